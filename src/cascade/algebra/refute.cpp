#include "cascade/algebra/refute.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/evaluate.h"

namespace redfuser::cascade {
namespace {

using Matrix = std::vector<std::vector<double>>;

// The value of one leaf at one sample, in [0.5, 2], where logarithms and roots are defined.
double sample(uint64_t leaf, uint64_t at) {
  std::mt19937_64 random(leaf * 1000003 + at * 7919 + 1);
  return std::uniform_real_distribution<double>(0.5, 2)(random);
}

// Gaussian elimination with full pivoting; entries below the tolerance are rounding errors.
int rank_of(Matrix m) {
  const size_t n = m.size();
  double largest = 0;
  for (const auto& row : m) {
    for (double value : row) largest = std::max(largest, std::abs(value));
  }
  for (size_t step = 0; step < n; ++step) {
    size_t row = step, column = step;
    for (size_t i = step; i < n; ++i) {
      for (size_t j = step; j < n; ++j) {
        if (std::abs(m[i][j]) > std::abs(m[row][column])) std::tie(row, column) = std::pair(i, j);
      }
    }
    if (!(std::abs(m[row][column]) > 1e-11 * largest)) return static_cast<int>(step);
    std::swap(m[step], m[row]);
    for (auto& values : m) std::swap(values[step], values[column]);
    for (size_t i = step + 1; i < n; ++i) {
      const double factor = m[i][step] / m[step][step];
      for (size_t j = step; j < n; ++j) m[i][j] -= factor * m[step][j];
    }
  }
  return static_cast<int>(n);
}

}  // namespace

int sampled_rank(const StageScope& scope, ir::Expr body, int points) {
  Matrix matrix;
  for (int a = 0; a < points; ++a) {
    auto& row = matrix.emplace_back();
    for (int b = 0; b < points; ++b) {
      row.push_back(evaluate(body, [&](ir::Expr leaf) -> double {
        const auto number = static_cast<uint64_t>(leaf->integer);
        switch (leaf->op) {
          case ir::ExprOp::Symbol:
            return 5;
          case ir::ExprOp::Axis:
            return leaf == scope.stream ? a : 0;
          case ir::ExprOp::Leaf:
            return sample(number + 100000, static_cast<uint64_t>(b));
          default: {
            // Elements of one tensor at different places are independent.
            uint64_t place = 0;
            for (ir::Expr index : leaf->args)
              place = place * 31 + static_cast<uint64_t>(index->integer);
            return sample(number, place);
          }
        }
      }));
    }
  }
  return rank_of(std::move(matrix));
}

}  // namespace redfuser::cascade
