// Running sums and products along an axis.
#include "reference/operators/scans.h"

#include <algorithm>

#include "ops/op_def.h"
#include "reference/expressions/lanes.h"
#include "reference/expressions/word_operations.h"

namespace redfuser::reference {
namespace {

// Replaces every element by `combine` of the elements before it and, unless `exclusive`, itself. A
// line's elements are `stride` apart, from the last one on in reverse.
template <typename Array, typename Combine>
void scan_line(Array& y, int64_t first, int64_t stride, int64_t size, bool exclusive,
               typename Array::Scalar neutral, const Combine& combine) {
  auto so_far = neutral;
  for (int64_t i = 0; i < size; ++i) {
    auto& element = y[first + i * stride];
    const auto next = combine(so_far, element);
    element = exclusive ? so_far : next;
    so_far = next;
  }
}

template <typename Array, typename Combine>
void scan_lines(const ops::NodeView& view, Array& y, typename Array::Scalar neutral,
                const Combine& combine) {
  const Dims& dims = view.input(0).constant.dims();
  const int64_t given = view.constant_integers(1)->at(0);
  const auto axis = static_cast<size_t>(view.axis(given, view.rank(0)));
  const bool exclusive = view.integer("exclusive", 0) != 0;
  const int64_t size = dims[axis];
  int64_t stride = 1;
  for (size_t d = axis + 1; d < dims.size(); ++d) stride *= dims[d];
  for (int64_t first = 0; first < y.size(); ++first) {
    if (first / stride % size != 0) continue;
    const bool reverse = view.integer("reverse", 0) != 0;
    scan_line(y, reverse ? first + (size - 1) * stride : first, reverse ? -stride : stride, size,
              exclusive, neutral, combine);
  }
}

template <bool product>
std::vector<Tensor> scan(const ops::NodeView& view) {
  const Tensor& x = view.input(0).constant;
  Lanes y = all_elements(x);
  if (is_float(x.dtype())) {
    scan_lines(view, y.numbers, product ? 1.0 : 0.0,
               [](double a, double b) { return product ? a * b : a + b; });
  } else {
    scan_lines(view, y.words, int64_t{product}, [&](int64_t a, int64_t b) {
      const auto left = static_cast<uint64_t>(a), right = static_cast<uint64_t>(b);
      return wrapped(x.dtype(), static_cast<int64_t>(product ? left * right : left + right));
    });
  }
  return {filled(y, x.dtype(), x.dims())};
}

}  // namespace

Direct scan_function(std::string_view op) {
  if (op == "CumSum") return scan<false>;
  if (op == "CumProd") return scan<true>;
  return nullptr;
}

}  // namespace redfuser::reference
