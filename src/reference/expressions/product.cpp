#include "reference/expressions/product.h"

#include <Eigen/Dense>
#include <algorithm>

#include "base/error.h"
#include "reference/expressions/word_operations.h"

namespace redfuser::reference {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 23;  // of a factor in memory at once

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<ir::Expr> joined(std::initializer_list<const std::vector<ir::Expr>*> parts) {
  std::vector<ir::Expr> all;
  for (const auto* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

// The rows [first_row, end_row) of a factor: doubles, or words as unsigned numbers, whose sums and
// products wrap around.
template <typename T>
Matrix<T> factor(Blocks& blocks, int64_t first_row, int64_t end_row, int64_t columns) {
  Matrix<T> result(end_row - first_row, columns);
  const int64_t begin = first_row * columns;
  blocks.for_each(begin, end_row * columns, [&](int64_t first, int64_t count, const Lanes& lanes) {
    auto part =
        Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>(result.data() + (first - begin), count);
    const auto fill = [&](const auto& values) {
      if (values.size() == 1) {
        part.setConstant(static_cast<T>(values[0]));
      } else {
        part = values.template cast<T>();
      }
    };
    if constexpr (std::is_same_v<T, double>) {
      fill(lanes.numbers);
    } else {
      fill(lanes.words);
    }
  });
  return result;
}

class Multiplication {
 public:
  Multiplication(const MatrixProduct& product, const Source& source)
      : dtype_(product.dtype),
        batch_(points_of(product.batch)),
        rows_(points_of(product.rows)),
        columns_(points_of(product.columns)),
        inner_(points_of(product.inner)),
        left_(product.left, joined({&product.batch, &product.rows, &product.inner}), source),
        right_(product.right, joined({&product.batch, &product.columns, &product.inner}), source) {}

  // Parts of the columns outermost, so that those of the right factor are computed once.
  template <typename T>
  void run(Tensor& result) {
    const int64_t most = std::max<int64_t>(kMaxElements / std::max<int64_t>(inner_, 1), 1);
    for (int64_t batch = 0; batch < batch_; ++batch) {
      for (int64_t column = 0; column < columns_; column += most) {
        const int64_t column_end = std::min(columns_, column + most);
        const int64_t right = batch * columns_;
        const Matrix<T> b = factor<T>(right_, right + column, right + column_end, inner_);
        for (int64_t row = 0; row < rows_; row += most) {
          const int64_t row_end = std::min(rows_, row + most), left = batch * rows_;
          const Matrix<T> a = factor<T>(left_, left + row, left + row_end, inner_);
          const Matrix<T> part = a * b.transpose();
          store_rows(part, left + row, column, result);
        }
      }
    }
  }

 private:
  template <typename T>
  void store_rows(const Matrix<T>& part, int64_t first_row, int64_t column, Tensor& result) const {
    for (int64_t row = 0; row < part.rows(); ++row) {
      Lanes lanes;
      if constexpr (std::is_same_v<T, double>) {
        lanes.numbers = part.row(row).transpose().array();
      } else {
        lanes.words = part.row(row).transpose().array().unaryExpr(
            [this](uint64_t bits) { return wrapped(dtype_, static_cast<int64_t>(bits)); });
      }
      store(lanes, result, (first_row + row) * columns_ + column, part.cols());
    }
  }

  DType dtype_;
  int64_t batch_, rows_, columns_, inner_;
  Blocks left_, right_;
};

}  // namespace

std::optional<MatrixProduct> as_product(ir::ExprPool& pool, const Reducing& reducing) {
  ir::Expr body = reducing.body;
  if (reducing.reduction != ir::Reduction::Sum || body->op != ir::ExprOp::Mul) return std::nullopt;
  if (!is_float(body->dtype) && !is_integer(body->dtype)) return std::nullopt;
  const std::vector<ir::Expr> others(body->args.begin() + 1, body->args.end());
  ir::Expr right = others.size() == 1 ? others[0] : pool.make(ir::ExprOp::Mul, others);
  MatrixProduct product{reducing.dtype, body->args[0], right, {}, {}, {}, reducing.bound};
  for (ir::Expr axis : reducing.free) {
    const bool in_left = product.left->depends_on(axis), in_right = right->depends_on(axis);
    (in_left && in_right ? product.batch
     : in_left           ? product.rows
                         : product.columns)
        .push_back(axis);
  }
  if (product.rows.empty() && product.columns.empty()) return std::nullopt;
  return product;
}

Tensor multiplied(const MatrixProduct& product, const Source& source) {
  const bool real = is_float(product.dtype);
  Tensor result(held_type(product.dtype),
                extents_of(joined({&product.batch, &product.rows, &product.columns})));
  Multiplication multiplication(product, source);
  real ? multiplication.run<double>(result) : multiplication.run<uint64_t>(result);
  return result;
}

}  // namespace redfuser::reference
