#include "base/type_codes.h"

#include <fmt/format.h>

namespace redfuser {

DType dtype_of(int64_t code) {
  constexpr int64_t kLast = static_cast<int64_t>(DType::Int2);
  const bool numbered = code > 0 && code <= kLast;
  const DType dtype = numbered ? static_cast<DType>(code) : DType::Undefined;
  return size_of(dtype) != 0 ? dtype : DType::Undefined;
}

std::string type_name(int64_t code) {
  if (code == 0) return "undefined";
  if (code == 14) return "complex64";
  if (code == 15) return "complex128";
  const DType dtype = dtype_of(code);
  return dtype == DType::Undefined ? fmt::format("of number {}", code)
                                   : std::string(name_of(dtype));
}

}  // namespace redfuser
