#include "runtime/report/viewer.h"

#include "base/error.h"

namespace redfuser::runtime {

// `{{main.js}}` in viewer.html stands for the file of that name, `{{data}}` for the data.
std::string viewer_page(const std::string& data) {
  std::string_view page;
  for (const ViewerFile& file : viewer_files()) {
    if (file.name == "viewer.html") page = file.text;
  }
  std::string result;
  while (!page.empty()) {
    const size_t open = page.find("{{");
    result += page.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = page.find("}}", open);
    RF_CHECK(close != std::string_view::npos, "viewer.html: a place is not closed");
    const std::string_view name = page.substr(open + 2, close - open - 2);
    bool found = name == "data";
    if (found) result += data;
    for (const ViewerFile& file : viewer_files()) {
      if (file.name != name) continue;
      result += file.text;
      found = true;
    }
    RF_CHECK(found, "viewer.html: no file is called {}", name);
    page = page.substr(close + 2);
  }
  return result;
}

}  // namespace redfuser::runtime
