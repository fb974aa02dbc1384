#include "ir/same_attribute.h"

#include <algorithm>
#include <cstring>

namespace redfuser::ir {

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.dims() == b.dims() &&
         (a.bytes() == 0 || a.data() == b.data() ||
          std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& left) {
        using T = std::decay_t<decltype(left)>;
        const T& right = std::get<T>(b);
        if constexpr (std::is_same_v<T, Tensor>) {
          return left.dtype() != DType::String && same_tensor(left, right);
        } else {
          return left == right;
        }
      },
      a);
}

bool same_attributes(const Attributes& a, const Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && same_attribute(x.second, y.second);
  });
}

}  // namespace redfuser::ir
