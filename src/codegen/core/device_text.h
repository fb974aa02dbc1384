// The headers of src/device as text, embedded by cmake/embedded_files.cmake.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redfuser::codegen {

struct DeviceHeader {
  std::string_view name;  // as #include has it: "device/reduce.cuh"
  std::string_view text;
};

std::span<const DeviceHeader> device_headers();

// The text of these headers and of all that they include. Each header stands once, after the
// headers that it includes, without `#pragma once` and the comments before it. Throws InternalError
// for a header that does not exist.
std::string device_prelude(std::span<const std::string_view> names);

}  // namespace redfuser::codegen
