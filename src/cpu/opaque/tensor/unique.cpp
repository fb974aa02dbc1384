#include <algorithm>
#include <numeric>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

// Orders the slices of x along an axis lexicographically; NaN sorts last and equals NaN.
template <typename T>
struct SliceOrder {
  const T* x;
  AxisView view;

  int compare(int64_t a, int64_t b) const {
    using A = Arithmetic<T>;
    for (int64_t outer = 0; outer < view.outer; ++outer) {
      const T* base = x + outer * view.size * view.inner;
      for (int64_t inner = 0; inner < view.inner; ++inner) {
        A left = static_cast<A>(base[a * view.inner + inner]);
        A right = static_cast<A>(base[b * view.inner + inner]);
        if (left < right) return -1;
        if (right < left) return 1;
        bool left_nan = left != left, right_nan = right != right;
        if (left_nan != right_nan) return right_nan ? -1 : 1;
      }
    }
    return 0;
  }
};

struct SliceGroups {
  ChargedVector<int64_t> first, counts;  // per unique slice
  ChargedVector<int64_t> inverse;        // per input slice
};

template <typename T>
SliceGroups group_slices(const SliceOrder<T>& order, bool sorted) {
  int64_t size = order.view.size;
  ChargedVector<int64_t> ranked(size);
  std::iota(ranked.begin(), ranked.end(), 0);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](int64_t a, int64_t b) { return order.compare(a, b) < 0; });
  SliceGroups groups;
  groups.inverse.resize(size);
  for (int64_t i = 0; i < size; ++i) {
    if (i == 0 || order.compare(ranked[i - 1], ranked[i]) != 0) {
      groups.first.push_back(ranked[i]);  // the stable sort puts the first occurrence first
      groups.counts.push_back(0);
    }
    ++groups.counts.back();
    groups.inverse[ranked[i]] = static_cast<int64_t>(groups.first.size()) - 1;
  }
  if (sorted) return groups;

  ChargedVector<int64_t> by_first(groups.first.size()), rank(groups.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  std::sort(by_first.begin(), by_first.end(),
            [&](int64_t a, int64_t b) { return groups.first[a] < groups.first[b]; });
  SliceGroups ordered;
  for (size_t i = 0; i < by_first.size(); ++i) {
    ordered.first.push_back(groups.first[by_first[i]]);
    ordered.counts.push_back(groups.counts[by_first[i]]);
    rank[by_first[i]] = static_cast<int64_t>(i);
  }
  for (int64_t group : groups.inverse) ordered.inverse.push_back(rank[group]);
  return ordered;
}

void set_integers(OpaqueCall& call, int output, const ChargedVector<int64_t>& values) {
  if (!call.has_output(output)) return;
  Tensor& tensor = call.allocate(output, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>());
}

}  // namespace

void run_unique(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  bool flat = !call.has("axis");
  int axis = flat ? 0 : call.axis(call.integer("axis", 0), static_cast<int>(x.dims().size()));
  AxisView view = flat ? AxisView{1, x.size(), 1} : around_axis(x.dims(), axis);
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    SliceOrder<T> order{x.as<T>(), view};
    SliceGroups groups = group_slices(order, call.integer("sorted", 1) != 0);
    auto count = static_cast<int64_t>(groups.first.size());
    Dims dims = flat ? Dims{count} : x.dims();
    dims[axis] = count;
    if (call.has_output(0)) {
      T* y = call.allocate(0, dims).as<T>();
      for (int64_t outer = 0; outer < view.outer; ++outer) {
        for (int64_t slice : groups.first) {
          y = std::copy_n(x.as<T>() + (outer * view.size + slice) * view.inner, view.inner, y);
        }
      }
    }
    set_integers(call, 1, groups.first);
    set_integers(call, 2, groups.inverse);
    set_integers(call, 3, groups.counts);
  });
}

}  // namespace redfuser::cpu
