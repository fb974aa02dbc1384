#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

// y[i] = x[0] + ... + x[i] along an axis; exclusive leaves x[i] out, reverse starts at the end.
// Floats accumulate in double, as one sum runs through all elements, and round once per element.
template <typename T>
void cumulative_sum(const AxisView& view, const T* x, T* y, bool exclusive, bool reverse,
                    ThreadPool& pool) {
  using A = std::conditional_t<std::is_floating_point_v<Arithmetic<T>>, double, T>;
  int64_t lines = view.outer * view.inner;
  parallel_ranges(pool, lines, 1 + (1 << 12) / (view.size + 1), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t base = line / view.inner * view.size * view.inner + line % view.inner;
      A total = 0;
      for (int64_t i = 0; i < view.size; ++i) {
        int64_t at = base + (reverse ? view.size - 1 - i : i) * view.inner;
        A next = wrapping_sum(total, static_cast<A>(x[at]));
        y[at] = static_cast<T>(exclusive ? total : next);
        total = next;
      }
    }
  });
}

}  // namespace

void run_cumsum(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  std::vector<int64_t> axis = call.integers_of(1);
  if (axis.size() != 1) call.fail("the axis input must have one element");
  AxisView view = around_axis(x.dims(), call.axis(axis[0], static_cast<int>(x.dims().size())));
  bool exclusive = call.integer("exclusive", 0) != 0, reverse = call.integer("reverse", 0) != 0;
  Tensor& y = call.allocate(0, x.dims());
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      call.fail("input " + describe(x) + " is not numeric");
    } else {
      cumulative_sum<T>(view, x.as<T>(), y.as<T>(), exclusive, reverse, call.threads());
    }
  });
}

}  // namespace redfuser::cpu
