#include <algorithm>

#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/opaque/tensor/scatter.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kTaskElements = 1 << 14, kPartElements = 64;

struct Axes {
  int axis = 0;
  Dims data, indices;
  std::vector<int64_t> data_strides, index_strides;
};

Axes axes_of(const OpaqueCall& call) {
  const Tensor &data = call.tensor(0), &indices = call.tensor(1), &updates = call.tensor(2);
  const int rank = static_cast<int>(data.dims().size());
  if (indices.dims() != updates.dims() || static_cast<int>(indices.dims().size()) != rank) {
    call.fail("indices " + describe(indices) + " and updates " + describe(updates) +
              " must have one shape, of the rank of data " + describe(data));
  }
  Axes axes{call.axis(call.integer("axis", 0), rank), data.dims(), indices.dims(), {}, {}};
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<size_t>(d);
    if (d != axes.axis && axes.indices[i] > axes.data[i]) {
      call.fail("indices " + describe(indices) + " reach outside data " + describe(data));
    }
  }
  axes.data_strides = strides_of(axes.data);
  axes.index_strides = strides_of(axes.indices);
  return axes;
}

// A line of updates along the last dimension: elements `step` apart but for their positions, which
// are `stride` apart. The first position outside of `size` elements; `count` where there is none.
template <typename Update, typename T, typename Index>
int64_t update_line(const T* updates, const Index* index, int64_t count, int64_t size,
                    int64_t stride, int64_t step, T* y) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = from_begin(index[i], size);
    if (at < 0) return i;
    update_element<Update>(y[at * stride + i * step], updates[i]);
  }
  return count;
}

// Updates in groups that share no element of the output: the lines along the last dimension that
// differ in their coordinate on the axis alone, or parts of so many lines.
class Groups {
 public:
  Groups(const OpaqueCall& call, const Axes& axes) : call_(call), axes_(axes) {
    const size_t rank = axes.data.size(), axis = static_cast<size_t>(axes.axis);
    length_ = axes.indices.back();
    along_last_ = axis + 1 == rank;
    repeats_ = along_last_ ? 1 : axes.indices[axis];
    for (size_t d = 0; d + 1 < rank; ++d) {
      if (d != axis) count_ *= axes.indices[d];
    }
    if (along_last_ || count_ >= call.threads().size()) return;
    parts_ = std::clamp<int64_t>(length_ / kPartElements, 1, call.threads().size());
    count_ *= parts_;
  }

  int64_t count() const { return count_; }
  int64_t elements() const { return repeats_ * (1 + (length_ - 1) / parts_); }  // at most, of each

  template <typename Update, typename T, typename Index>
  void update(int64_t group, const Index* index, const T* updates, T* y) const {
    const auto axis = static_cast<size_t>(axes_.axis);
    const int64_t part = group % parts_, first = length_ * part / parts_;
    const int64_t count = length_ * (part + 1) / parts_ - first;
    const int64_t step = along_last_ ? 0 : 1;
    int64_t from = first, to = first * step;
    group /= parts_;
    for (size_t d = axes_.data.size() - 1; d-- > 0;) {
      if (d == axis) continue;
      const int64_t at = group % axes_.indices[d];
      group /= axes_.indices[d];
      from += at * axes_.index_strides[d];
      to += at * axes_.data_strides[d];
    }
    const int64_t size = axes_.data[axis], stride = axes_.data_strides[axis];
    for (int64_t k = 0; k < repeats_; ++k) {
      const int64_t begin = from + k * step * axes_.index_strides[axis];
      const int64_t done =
          update_line<Update>(updates + begin, index + begin, count, size, stride, step, y + to);
      if (done < count) fail_outside(call_, index[begin + done], size);
    }
  }

 private:
  const OpaqueCall& call_;
  const Axes& axes_;
  int64_t length_ = 1, repeats_ = 1, count_ = 1, parts_ = 1;
  bool along_last_ = true;
};

}  // namespace

void run_scatter_elements(OpaqueCall& call) {
  const Axes axes = axes_of(call);
  const PositionReader positions(call);
  const Tensor& updates = call.tensor(2);
  Tensor& y = start_output(call);
  if (updates.size() == 0) return;
  const Groups groups(call, axes);
  const int64_t grain = 1 + kTaskElements / groups.elements();
  dispatch_update(call, [&](auto update, auto tag) {
    using T = typename decltype(tag)::type;
    positions.dispatch([&](const auto* index) {
      parallel_ranges(call.threads(), groups.count(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t group = begin; group < end; ++group) {
          groups.update<decltype(update)>(group, index, updates.as<T>(), y.as<T>());
        }
      });
    });
  });
}

}  // namespace redfuser::cpu
