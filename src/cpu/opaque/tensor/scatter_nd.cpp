#include <algorithm>

#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/opaque/tensor/scatter.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kCopied = 16;        // elements of a slice that are worth a call
constexpr int64_t kPartedBytes = 256;  // slices from which threads divide the output

struct Tuples {
  int64_t rows = 1, depth = 0, slice = 1;
  std::vector<int64_t> strides;  // in slices
};

Tuples tuples_of(const OpaqueCall& call) {
  const Dims &data = call.dims(0), &indices = call.dims(1);
  const auto rank = static_cast<int64_t>(data.size());
  Tuples t;
  t.depth = indices.empty() ? 0 : indices.back();
  if (indices.empty() || t.depth > rank) {
    call.fail("indices " + describe(call.tensor(1)) + " do not fit data " +
              describe(call.tensor(0)));
  }
  for (int64_t d = t.depth; d < rank; ++d) t.slice *= data[static_cast<size_t>(d)];
  for (size_t d = 0; d + 1 < indices.size(); ++d) t.rows *= indices[d];
  t.strides = strides_of(Dims(data.begin(), data.begin() + t.depth));
  if (call.tensor(2).size() != t.rows * t.slice) {
    call.fail("updates " + describe(call.tensor(2)) + " do not fit data " +
              describe(call.tensor(0)) + " and indices " + describe(call.tensor(1)));
  }
  return t;
}

// The slices that tuples [begin, end) name.
template <typename Index>
void find_slices(const OpaqueCall& call, const Tuples& t, const Index* index, int64_t begin,
                 int64_t end, int64_t* slices) {
  const Dims& data = call.dims(0);
  const int64_t *sizes = data.data(), *strides = t.strides.data(), depth = t.depth;
  for (int64_t row = begin; row < end; ++row) {
    int64_t slice = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t at = from_begin(index[row * depth + d], sizes[d]);
      if (at < 0) fail_outside(call, index[row * depth + d], sizes[d]);
      slice += at * strides[d];
    }
    slices[row] = slice;
  }
}

// Updates those slices of [low, high) that are named, in the order of the tuples.
template <typename Update, typename T>
void update_slices(const Tuples& t, const int64_t* slices, int64_t low, int64_t high,
                   const T* updates, T* y) {
  const int64_t length = t.slice;
  for (int64_t row = 0; row < t.rows; ++row) {
    const int64_t slice = slices[row];
    if (slice < low || slice >= high) continue;
    const T* update = updates + row * length;
    T* target = y + slice * length;
    if constexpr (std::is_same_v<Update, ReplaceUpdate>) {
      if (length >= kCopied) {
        std::copy_n(update, length, target);
        continue;
      }
    }
    for (int64_t i = 0; i < length; ++i) update_element<Update>(target[i], update[i]);
  }
}

}  // namespace

void run_scatter_nd(OpaqueCall& call) {
  const Tuples t = tuples_of(call);
  const PositionReader positions(call);
  auto slices = scratch<int64_t>(t.rows);
  positions.dispatch([&](const auto* index) {
    parallel_ranges(call.threads(), t.rows, 1 << 12, [&](int64_t begin, int64_t end) {
      find_slices(call, t, index, begin, end, slices.get());
    });
  });
  const Tensor &data = call.tensor(0), &updates = call.tensor(2);
  Tensor& y = start_output(call);
  if (updates.size() == 0) return;
  const int64_t count = y.size() / t.slice;
  const auto bytes = t.slice * static_cast<int64_t>(size_of(data.dtype()));
  // Every thread looks through all tuples, so that of equal ones the last counts.
  const int64_t parts =
      bytes < kPartedBytes || t.rows * bytes < (1 << 16) ? 1 : call.threads().size();
  dispatch_update(call, [&](auto update, auto tag) {
    using T = typename decltype(tag)::type;
    call.threads().parallel_for(parts, [&](int64_t part, int) {
      update_slices<decltype(update)>(t, slices.get(), count * part / parts,
                                      count * (part + 1) / parts, updates.as<T>(), y.as<T>());
    });
  });
}

}  // namespace redfuser::cpu
