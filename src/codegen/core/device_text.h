// The headers of src/device as text, embedded by cmake/embed_device.cmake.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redfuser::codegen {

struct DeviceHeader {
  std::string_view name;  // "reduce" for src/device/reduce.cuh
  std::string_view text;
};

std::span<const DeviceHeader> device_headers();

// The named headers, one after the other, without their `#pragma once` and first comments.
std::string device_prelude(std::span<const std::string_view> names);

}  // namespace redfuser::codegen
