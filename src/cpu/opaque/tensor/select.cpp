#include <algorithm>
#include <cstring>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {

void run_nonzero(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  ChargedVector<int64_t> found;
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Arithmetic<T>;
    const T* at = x.as<T>();
    for (int64_t i = 0; i < x.size(); ++i) {
      if (static_cast<A>(at[i]) != static_cast<A>(0)) found.push_back(i);
    }
  });
  // A scalar counts as a vector of one element with no dimension to report.
  auto rank = static_cast<int64_t>(x.dims().size()), count = static_cast<int64_t>(found.size());
  std::vector<int64_t> strides = strides_of(x.dims());
  int64_t* y = call.allocate(0, {rank, count}).as<int64_t>();
  for (int64_t d = 0; d < rank; ++d) {
    for (int64_t i = 0; i < count; ++i) y[d * count + i] = found[i] / strides[d] % x.dims()[d];
  }
}

void run_compress(OpaqueCall& call) {
  const Tensor &x = call.tensor(0), &condition = call.tensor(1);
  bool flat = !call.has("axis");
  int axis = flat ? 0 : call.axis(call.integer("axis", 0), static_cast<int>(x.dims().size()));
  AxisView view = flat ? AxisView{1, x.size(), 1} : around_axis(x.dims(), axis);
  if (condition.dtype() != DType::Bool) call.fail("condition " + describe(condition) + " not bool");
  ChargedVector<int64_t> kept;
  for (int64_t i = 0; i < std::min(condition.size(), view.size); ++i) {
    if (condition.as<bool>()[i]) kept.push_back(i);
  }
  if (condition.size() > view.size) {
    call.fail("condition " + describe(condition) + " is longer than the axis of " + describe(x));
  }
  Dims dims = flat ? Dims{0} : x.dims();
  dims[axis] = static_cast<int64_t>(kept.size());
  Tensor& y = call.allocate(0, dims);
  size_t row = view.inner * size_of(x.dtype());
  const char* source = x.as<char>();
  char* target = y.as<char>();
  for (int64_t outer = 0; outer < view.outer; ++outer, source += view.size * row) {
    for (int64_t i : kept) {
      std::memcpy(target, source + i * row, row);
      target += row;
    }
  }
}

}  // namespace redfuser::cpu
