// Single elements of tensors as doubles, for reports and text files.
#pragma once

#include "base/dispatch.h"
#include "redfuser/tensor.h"

namespace redfuser::io {

// Element `index` (row-major); integers beyond 2^53 are rounded.
inline double element_as_double(const Tensor& tensor, int64_t index) {
  return dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<double>(static_cast<Arithmetic<T>>(tensor.as<T>()[index]));
  });
}

// The indices of element `position` in a row-major tensor of shape `dims`.
inline Dims unravel(int64_t position, const Dims& dims) {
  Dims index(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    index[i] = position % dims[i];
    position /= dims[i];
  }
  return index;
}

}  // namespace redfuser::io
