// The page's viewer: viewer.html with the style, the scripts and the data in their places.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redfuser::runtime {

// The files of this folder that are embedded by cmake/embedded_files.cmake.
struct ViewerFile {
  std::string_view name;  // "viewer.html"
  std::string_view text;
};
std::span<const ViewerFile> viewer_files();

// The whole page. `data` is JSON without '<'.
std::string viewer_page(const std::string& data);

}  // namespace redfuser::runtime
