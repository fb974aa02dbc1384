#include "cpu/opaque/tensor/scatter.h"

#include <cstring>

namespace redfuser::cpu {

Tensor& start_output(OpaqueCall& call) {
  const Tensor& data = call.tensor(0);
  Tensor& y = call.allocate(0, data.dims());
  // A caller may have the result in the data's place.
  if (y.data() == data.data()) return y;
  const char* from = data.as<char>();
  char* to = static_cast<char*>(y.mutable_data());
  parallel_ranges(call.threads(), static_cast<int64_t>(data.bytes()), 1 << 18,
                  [=](int64_t begin, int64_t end) {
                    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
                  });
  return y;
}

PositionReader::PositionReader(const OpaqueCall& call) {
  const Tensor& positions = call.tensor(1);
  if (positions.dtype() == DType::Int32) {
    narrow_ = positions.as<int32_t>();
  } else if (positions.dtype() == DType::Int64) {
    wide_ = positions.as<int64_t>();
  } else {
    converted_ = call.integers_of(1);
    wide_ = converted_.data();
  }
}

void fail_outside(const OpaqueCall& call, int64_t index, int64_t size) {
  call.fail(fmt::format("index {} is outside [{}, {})", index, -size, size));
}

}  // namespace redfuser::cpu
