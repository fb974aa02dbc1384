#include <algorithm>
#include <cstring>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {

namespace {

// Calls use(places, count) with the elements of each row that are not 0. Without branches that
// depend on elements, as their order is of no kind.
template <typename T, typename Use>
void for_nonzero_rows(const T* x, int64_t rows, int64_t columns, const Use& use) {
  using A = Arithmetic<T>;
  ChargedVector<int64_t> places(static_cast<size_t>(columns) + 1);
  for (int64_t row = 0; row < rows; ++row, x += columns) {
    int64_t count = 0;
    for (int64_t c = 0; c < columns; ++c) {
      places[static_cast<size_t>(count)] = c;
      count += static_cast<A>(x[c]) != static_cast<A>(0) ? 1 : 0;
    }
    use(places.data(), count);
  }
}

}  // namespace

void run_nonzero(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  // A scalar counts as a vector of one element with no dimension to report.
  const auto rank = static_cast<int64_t>(x.dims().size());
  const int64_t columns = rank == 0 ? 1 : x.dims().back();
  const int64_t rows = x.size() == 0 ? 0 : x.size() / columns;
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Arithmetic<T>;
    const T* at = x.as<T>();
    const int64_t count = std::count_if(at, at + x.size(),
                                        [](T e) { return static_cast<A>(e) != static_cast<A>(0); });
    int64_t* y = call.allocate(0, {rank, count}).as<int64_t>();
    if (rank == 0) return;
    Dims row(x.dims().begin(), x.dims().end() - 1);
    std::fill(row.begin(), row.end(), 0);
    for_nonzero_rows<T>(at, rows, columns, [&](const int64_t* places, int64_t found) {
      for (int64_t d = 0; d + 1 < rank; ++d) std::fill_n(y + d * count, found, row[d]);
      std::copy_n(places, found, y + (rank - 1) * count);
      y += found;
      for (int64_t d = rank - 2; d >= 0 && ++row[d] == x.dims()[d]; --d) row[d] = 0;
    });
  });
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
