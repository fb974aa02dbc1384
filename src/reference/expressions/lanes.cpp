#include "reference/expressions/lanes.h"

#include <type_traits>

#include "base/dispatch.h"

namespace redfuser::reference {
namespace {

// Like dispatch, with strings as their numbers.
template <typename Body>
void dispatch_stored(DType dtype, Body&& body) {
  if (dtype == DType::String) return body(TypeTag<int64_t>{});
  dispatch(dtype, body);
}

}  // namespace

Lanes elements_at(const Tensor& tensor, const Words& positions) {
  Lanes result;
  dispatch_stored(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* elements = tensor.as<T>();
    if constexpr (std::is_integral_v<T>) {
      result.words = positions.unaryExpr(
          [elements](int64_t at) { return static_cast<int64_t>(elements[at]); });
    } else {
      result.numbers =
          positions.unaryExpr([elements](int64_t at) { return static_cast<double>(elements[at]); });
    }
  });
  return result;
}

void store(const Lanes& lanes, Tensor& tensor, int64_t first, int64_t count) {
  dispatch_stored(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = tensor.as<T>() + first;
    const auto fill = [&](const auto& from) {
      const int64_t step = from.size() == 1 ? 0 : 1;
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i * step]);
    };
    if constexpr (std::is_integral_v<T>) {
      fill(lanes.words);
    } else {
      fill(lanes.numbers);
    }
  });
}

Lanes all_elements(const Tensor& tensor) {
  return elements_at(tensor, Words::LinSpaced(tensor.size(), 0, tensor.size() - 1));
}

Tensor filled(const Lanes& lanes, DType dtype, Dims dims) {
  Tensor result(dtype, std::move(dims));
  if (result.size() > 0) store(lanes, result, 0, result.size());
  return result;
}

DType held_type(DType dtype) { return is_float(dtype) ? DType::Float64 : dtype; }

static Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  return filled(all_elements(tensor), dtype, tensor.dims());
}

Tensor widened(const Tensor& tensor) { return converted(tensor, held_type(tensor.dtype())); }

Tensor rounded(const Tensor& tensor, DType dtype) {
  return tensor.dtype() == DType::Float64 ? converted(tensor, dtype) : tensor;
}

}  // namespace redfuser::reference
