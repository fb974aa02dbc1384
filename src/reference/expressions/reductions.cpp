#include "reference/expressions/reductions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "ir/scalars/integers.h"
#include "reference/expressions/word_operations.h"

namespace redfuser::reference {
namespace {

std::vector<ir::Expr> joined(std::vector<ir::Expr> a, const std::vector<ir::Expr>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Calls body(row, first, values) for every part of a row of the reduction; values are whole arrays.
template <typename Body>
void for_each_part(const Reducing& reducing, const Source& source, const Body& body) {
  Blocks blocks(reducing.body, joined(reducing.free, reducing.bound), source);
  const int64_t row_size = points_of(reducing.bound);
  const bool real = is_float(reducing.body->dtype);
  blocks.for_each(0, blocks.size(), [&](int64_t first, int64_t count, const Lanes& lanes) {
    const Numbers numbers = real && lanes.numbers.size() == 1
                                ? Numbers(Numbers::Constant(count, lanes.numbers[0]))
                                : lanes.numbers;
    const Words words = !real && lanes.words.size() == 1
                            ? Words(Words::Constant(count, lanes.words[0]))
                            : lanes.words;
    for (int64_t i = 0; i < count;) {
      const int64_t at = (first + i) % row_size, part = std::min(row_size - at, count - i);
      const int64_t row = (first + i) / row_size;
      if (real) {
        body(row, at, numbers.segment(i, part));
      } else {
        body(row, at, words.segment(i, part));
      }
      i += part;
    }
  });
}

// Whether `a` precedes `b` in the order of a ranked reduction.
bool before(bool largest, DType, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return largest ? a > b : a < b;
}
bool before(bool largest, DType dtype, int64_t a, int64_t b) {
  return largest ? less_words(dtype, b, a) : less_words(dtype, a, b);
}

bool is_largest(ir::Reduction reduction) {
  return reduction == ir::Reduction::ArgMax || reduction == ir::Reduction::TopK;
}

double identity_of_reals(ir::Reduction reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (reduction == ir::Reduction::Max) return -kInfinity;
  if (reduction == ir::Reduction::Min) return kInfinity;
  return reduction == ir::Reduction::Prod ? 1 : 0;
}

int64_t identity_of_words(ir::Reduction reduction, DType dtype) {
  if (reduction == ir::Reduction::Max) return dtype == DType::Bool ? 0 : ir::lowest_word(dtype);
  if (reduction == ir::Reduction::Min) return dtype == DType::Bool ? 1 : ir::highest_word(dtype);
  return reduction == ir::Reduction::Prod ? 1 : 0;
}

template <typename Part>
double folded(ir::Reduction reduction, DType, double so_far, const Part& part) {
  switch (reduction) {
    case ir::Reduction::Sum:
      return so_far + part.sum();
    case ir::Reduction::Prod:
      return so_far * part.prod();
    default:
      break;
  }
  if (std::isnan(so_far) || part.isNaN().any()) return std::numeric_limits<double>::quiet_NaN();
  return reduction == ir::Reduction::Max ? std::max(so_far, part.maxCoeff())
                                         : std::min(so_far, part.minCoeff());
}

template <typename Part>
int64_t folded(ir::Reduction reduction, DType dtype, int64_t so_far, const Part& part) {
  const auto unsigned_part = part.template cast<uint64_t>();
  const auto bits = static_cast<uint64_t>(so_far);
  switch (reduction) {
    case ir::Reduction::Sum:
      return wrapped(dtype, static_cast<int64_t>(bits + unsigned_part.sum()));
    case ir::Reduction::Prod:
      return wrapped(dtype, static_cast<int64_t>(bits * unsigned_part.prod()));
    default:
      break;
  }
  for (const int64_t word : part) {
    if (before(reduction == ir::Reduction::Max, dtype, word, so_far)) so_far = word;
  }
  return so_far;
}

// One row's extremum so far.
template <typename T>
struct Best {
  T value{};
  int64_t at = -1;
};

template <typename T>
void store_best(const std::vector<Best<T>>& best, bool index, Tensor& result) {
  for (size_t row = 0; row < best.size(); ++row) {
    Lanes lanes = Lanes::of(best[row].value);
    if (index) lanes = Lanes::of(std::max<int64_t>(best[row].at, 0));
    store(lanes, result, static_cast<int64_t>(row), 1);
  }
}

// ArgMax and ArgMin.
template <typename T>
void find_best(const Reducing& reducing, const Source& source, Tensor& result) {
  std::vector<Best<T>> best(static_cast<size_t>(result.size()));
  const bool largest = is_largest(reducing.reduction);
  for_each_part(reducing, source, [&](int64_t row, int64_t first, const auto& part) {
    Best<T>& so_far = best[static_cast<size_t>(row)];
    for (int64_t i = 0; i < part.size(); ++i) {
      const auto value = static_cast<T>(part[i]);
      if (so_far.at < 0 || before(largest, reducing.body->dtype, value, so_far.value)) {
        so_far = {value, first + i};
      }
    }
  });
  store_best(best, reducing.index, result);
}

template <typename T>
void fold_rows(const Reducing& reducing, const Source& source, T identity, Tensor& result) {
  Eigen::Array<T, Eigen::Dynamic, 1> rows =
      Eigen::Array<T, Eigen::Dynamic, 1>::Constant(result.size(), identity);
  for_each_part(reducing, source, [&](int64_t row, int64_t, const auto& part) {
    if constexpr (std::is_same_v<T, typename std::decay_t<decltype(part)>::Scalar>) {
      rows[row] = folded(reducing.reduction, reducing.dtype, rows[row], part);
    }
  });
  Lanes lanes;
  if constexpr (std::is_same_v<T, double>) {
    lanes.numbers = std::move(rows);
  } else {
    lanes.words = std::move(rows);
  }
  store(lanes, result, 0, result.size());
}

}  // namespace

Tensor reduced(const Reducing& reducing, const Source& source) {
  Tensor result(held_type(reducing.dtype), extents_of(reducing.free));
  const ir::Reduction reduction = reducing.reduction;
  const bool real = is_float(reducing.body->dtype);
  if (reduction == ir::Reduction::ArgMax || reduction == ir::Reduction::ArgMin) {
    real ? find_best<double>(reducing, source, result)
         : find_best<int64_t>(reducing, source, result);
  } else if (real) {
    fold_rows<double>(reducing, source, identity_of_reals(reduction), result);
  } else {
    fold_rows<int64_t>(reducing, source, identity_of_words(reduction, reducing.dtype), result);
  }
  return result;
}

template <typename T>
static void sort_row(const Reducing& reducing, const T* values, int64_t* order, int64_t count) {
  std::iota(order, order + count, int64_t{0});
  const bool largest = is_largest(reducing.reduction);
  std::stable_sort(order, order + count, [&](int64_t a, int64_t b) {
    return before(largest, reducing.body->dtype, values[a], values[b]);
  });
}

Tensor sorted(const Reducing& reducing, const Source& source) {
  const Dims dims = extents_of(joined(reducing.free, reducing.bound));
  Tensor result(held_type(reducing.dtype), dims);
  const int64_t count = points_of(reducing.bound);
  if (result.size() == 0) return result;
  Numbers numbers(count);
  Words words(count), order(count);
  for_each_part(reducing, source, [&](int64_t row, int64_t first, const auto& part) {
    constexpr bool real = std::is_same_v<typename std::decay_t<decltype(part)>::Scalar, double>;
    if constexpr (real) {
      numbers.segment(first, part.size()) = part;
    } else {
      words.segment(first, part.size()) = part;
    }
    if (first + part.size() < count) return;
    if constexpr (real) {
      sort_row(reducing, numbers.data(), order.data(), count);
    } else {
      sort_row(reducing, words.data(), order.data(), count);
    }
    Lanes lanes{{}, order};
    if (!reducing.index && real) lanes = {Numbers(numbers(order)), {}};
    if (!reducing.index && !real) lanes = {{}, Words(words(order))};
    store(lanes, result, row * count, count);
  });
  return result;
}

}  // namespace redfuser::reference
