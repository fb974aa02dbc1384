// The headers of src/device as text, embedded by cmake/embedded_files.cmake.
#pragma once

#include <span>
#include <string_view>

namespace redfuser::codegen {

struct DeviceHeader {
  std::string_view name;  // "reduce" for src/device/reduce.cuh
  std::string_view text;
};

std::span<const DeviceHeader> device_headers();

}  // namespace redfuser::codegen
