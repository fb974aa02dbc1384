// The inverse of a pool of maxima.
#include <atomic>
#include <cstring>
#include <limits>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/geometry.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/opaque/tensor/scatter.h"

namespace redfuser::cpu {
namespace {

// The sizes that the pool was made of.
Dims pooled_dims(const OpaqueCall& call, const Dims& in) {
  const auto kernel = call.small_integers("kernel_shape", {});
  const size_t rank = kernel.size();
  const Geometry geometry(call, rank);
  Dims dims{in[0], in[1]};
  for (size_t i = 0; i < rank; ++i) {
    dims.push_back((in[i + 2] - 1) * geometry.strides[i] + kernel[i] - geometry.pads[i] -
                   geometry.pads[rank + i]);
    if (dims.back() < 0) call.fail("kernel_shape, strides and pads do not fit the input");
  }
  return dims;
}

// Where an element of one tensor stands in another one: at the same coordinates. The first `outer`
// dimensions have been taken away from both.
class Placement {
 public:
  Placement(const Dims& from, const Dims& to, size_t outer)
      : from_(from.begin() + static_cast<int64_t>(outer), from.end()),
        to_(to.begin() + static_cast<int64_t>(outer), to.end()),
        count_(element_count(from_)),
        strides_(strides_of(from_)),
        to_strides_(strides_of(to_)) {}

  bool same() const { return from_ == to_; }
  int64_t count() const { return count_; }

  // -1 outside of either.
  int64_t of(int64_t index) const {
    if (index < 0 || index >= count_) return -1;
    // Quotients of 32 bits take a fraction of the time.
    if (count_ <= std::numeric_limits<uint32_t>::max()) return placed<uint32_t>(index);
    return placed<uint64_t>(index);
  }

 private:
  template <typename U>
  int64_t placed(int64_t index) const {
    int64_t at = 0;
    U rest = static_cast<U>(index);
    for (size_t d = 0; d < to_.size(); ++d) {
      U position = rest;
      if (d + 1 < to_.size()) {
        position = rest / static_cast<U>(strides_[d]);
        rest -= position * static_cast<U>(strides_[d]);
      }
      if (static_cast<int64_t>(position) >= to_[d]) return -1;
      at += static_cast<int64_t>(position) * to_strides_[d];
    }
    return at;
  }

  Dims from_, to_;
  int64_t count_;
  std::vector<int64_t> strides_, to_strides_;
};

// The values of a channel, whose indices count from `begin` on and lie in the same channel of the
// result, or else false: of several values in one place the last one counts, which tasks by channel
// decide only of their own.
template <typename T, typename Index>
bool fill_channel(const T* values, const Index* indices, int64_t count, const Placement& placement,
                  int64_t begin, int64_t size, T* y) {
  std::memset(static_cast<void*>(y), 0, static_cast<size_t>(size) * sizeof(T));
  if (placement.same()) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = indices[i] - begin;
      if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(size)) return false;
      y[at] = values[i];
    }
    return true;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = placement.of(indices[i] - begin);
    if (at < 0) return false;
    y[at] = values[i];
  }
  return true;
}

template <typename T, typename Index>
bool fill_channels(ThreadPool& pool, const Placement& channel, const Tensor& x,
                   const Index* indices, int64_t channels, Tensor& y) {
  const int64_t count = x.size() / channels, size = y.size() / channels;
  std::atomic<bool> apart = true;
  parallel_ranges(pool, channels, 1 + (1 << 14) / (size + 1), [&](int64_t c, int64_t end) {
    for (; c < end && apart; ++c) {
      const bool own = fill_channel(x.as<T>() + c * count, indices + c * count, count, channel,
                                    c * channel.count(), size, y.as<T>() + c * size);
      if (!own) apart = false;
    }
  });
  return apart;
}

template <typename T, typename Index>
void fill_in_order(const OpaqueCall& call, const Placement& placement, const Tensor& x,
                   const Index* indices, Tensor& y) {
  std::memset(y.mutable_data(), 0, y.bytes());
  for (int64_t i = 0; i < x.size(); ++i) {
    const int64_t at = placement.of(indices[i]);
    if (at < 0) {
      call.fail(fmt::format("index {} lies outside of the output {}", indices[i], describe(y)));
    }
    y.as<T>()[at] = x.as<T>()[i];
  }
}

}  // namespace

// Indices count within the tensor that the pool was made of; a larger output keeps its coordinates.
void run_max_unpool(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  if (call.dims(1) != x.dims()) call.fail("values and indices differ in shape");
  const Dims pooled = pooled_dims(call, x.dims());
  const Dims dims = call.has_input(2) ? call.integers_of(2) : pooled;
  if (dims.size() != pooled.size()) call.fail("output_shape has another rank");
  const PositionReader positions(call);
  Tensor& y = call.allocate(0, dims);
  const int64_t channels = x.dims()[0] * x.dims()[1];
  const bool alike = dims[0] == x.dims()[0] && dims[1] == x.dims()[1] && channels > 0;
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    positions.dispatch([&](const auto* indices) {
      if (alike && fill_channels<T>(call.threads(), {pooled, dims, 2}, x, indices, channels, y))
        return;
      fill_in_order<T>(call, {pooled, dims, 0}, x, indices, y);
    });
  });
}

}  // namespace redfuser::cpu
