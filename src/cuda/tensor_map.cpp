#include "cuda/tensor_map.h"

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
  RF_CHECK(layout.strides.size() + 1 == rank && layout.box.size() == rank,
           "a tensor map of \"{}\" has no rank", name);
  const std::vector<unsigned> steps(rank, 1);
  TensorMap map{};
  const Result result = driver().cuTensorMapEncodeTiled(
      &map, layout.bfloat ? kMapBFloat16 : kMapFloat16, rank, reinterpret_cast<void*>(address),
      layout.dims.data(), layout.strides.data(), layout.box.data(), steps.data(),
      kMapNotInterleaved, kMapSwizzle128Bytes, kMapPromote256Bytes, kMapZerosOutside);
  check(result, fmt::format("describing a tensor of \"{}\" (dims {}, strides {}, box {})", name,
                            fmt::join(layout.dims, "x"), fmt::join(layout.strides, ","),
                            fmt::join(layout.box, "x"))
                    .c_str());
  return map;
}

}  // namespace redfuser::cuda
