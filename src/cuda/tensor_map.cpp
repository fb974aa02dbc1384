#include "cuda/tensor_map.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "cuda/driver.h"

namespace redfuser::cuda {

TensorMap encode_tensor_map(const TensorLayout& layout, DevicePointer address,
                            const std::string& name) {
  constexpr uint64_t kAlignment = 16;
  if (address % kAlignment != 0) {
    user_error("\"{}\" needs its tensors aligned to {} bytes on the GPU", name, kAlignment);
  }
  const auto rank = static_cast<unsigned>(layout.dims.size());
  const bool windows = !layout.lower.empty();
  RF_CHECK(layout.strides.size() + 1 == rank && layout.box.size() == (windows ? 2 : rank) &&
               layout.lower.size() == (windows ? rank - 2 : 0),
           "a tensor map of \"{}\" has no rank", name);
  std::vector<unsigned> steps(rank, 1);
  std::copy(layout.steps.begin(), layout.steps.end(), steps.begin() + 1);
  TensorMap map{};
  const int type = layout.bfloat ? kMapBFloat16 : kMapFloat16;
  void* const data = reinterpret_cast<void*>(address);
  const Result result = windows
                            ? driver().cuTensorMapEncodeIm2col(
                                  &map, type, rank, data, layout.dims.data(), layout.strides.data(),
                                  layout.lower.data(), layout.upper.data(), layout.box[0],
                                  layout.box[1], steps.data(), kMapNotInterleaved,
                                  kMapSwizzle128Bytes, kMapPromote256Bytes, kMapZerosOutside)
                            : driver().cuTensorMapEncodeTiled(
                                  &map, type, rank, data, layout.dims.data(), layout.strides.data(),
                                  layout.box.data(), steps.data(), kMapNotInterleaved,
                                  kMapSwizzle128Bytes, kMapPromote256Bytes, kMapZerosOutside);
  check(result,
        fmt::format("describing a tensor of \"{}\" (dims {}, strides {}, box {}, from {} to {})",
                    name, fmt::join(layout.dims, "x"), fmt::join(layout.strides, ","),
                    fmt::join(layout.box, "x"), fmt::join(layout.lower, ","),
                    fmt::join(layout.upper, ","))
            .c_str());
  return map;
}

}  // namespace redfuser::cuda
