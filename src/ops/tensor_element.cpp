#include "ops/tensor_element.h"

#include <type_traits>

#include "base/dispatch.h"
#include "base/integers.h"

namespace redfuser::ops {

ir::Expr tensor_element(ir::ExprPool& pool, const Tensor& tensor, int64_t index) {
  return dispatch(tensor.dtype(), [&](auto tag) -> ir::Expr {
    using T = typename decltype(tag)::type;
    const T element = tensor.as<T>()[index];
    if constexpr (std::is_integral_v<T>) {
      return pool.number_int(static_cast<int64_t>(element), tensor.dtype());
    } else {
      return pool.number(static_cast<double>(element), tensor.dtype());
    }
  });
}

std::vector<ir::Expr> tensor_elements(ir::ExprPool& pool, const Tensor& tensor) {
  std::vector<ir::Expr> elements;
  elements.reserve(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i) elements.push_back(tensor_element(pool, tensor, i));
  return elements;
}

Tensor tensor_of(DType dtype, Dims dims, std::span<const ir::Expr> elements) {
  Tensor tensor(dtype, std::move(dims));
  RF_CHECK(tensor.size() == static_cast<int64_t>(elements.size()), "{} from {} elements",
           describe(tensor), elements.size());
  dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < elements.size(); ++i) {
      const bool real = is_float(elements[i]->dtype);
      if constexpr (std::is_integral_v<T>) {
        tensor.as<T>()[i] =
            static_cast<T>(real ? saturated<int64_t>(elements[i]->number) : elements[i]->integer);
      } else {
        tensor.as<T>()[i] =
            static_cast<T>(real ? elements[i]->number : static_cast<double>(elements[i]->integer));
      }
    }
  });
  return tensor;
}

}  // namespace redfuser::ops
