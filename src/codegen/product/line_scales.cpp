#include "codegen/product/line_scales.h"

#include <algorithm>

#include "ir/contraction.h"

namespace redfuser::codegen {
namespace {

bool depends_on(ir::Expr e, const std::vector<ir::Expr>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](ir::Expr axis) { return e->depends_on(axis); });
}

class Factors {
 public:
  Factors(ir::ExprPool& pool, ir::Expr product, const std::vector<ir::Expr>& rows,
          const std::vector<ir::Expr>& columns)
      : pool_(pool), product_(product), rows_(rows), columns_(columns) {}

  // False if `e` is not such a product.
  bool add(ir::Expr e) {
    e = ir::without_float_casts(e);
    if (e == product_) return ++products_ == 1;
    if (e->op == ir::ExprOp::Mul && is_float(e->dtype)) {
      return std::all_of(e->args.begin(), e->args.end(), [&](ir::Expr arg) { return add(arg); });
    }
    if (e->op == ir::ExprOp::Div && is_float(e->dtype)) {
      return add(e->args[0]) && add_scale(pool_.make(ir::ExprOp::Reciprocal, {e->args[1]}));
    }
    return add_scale(e);
  }

  int products() const { return products_; }
  LineScales scales;

 private:
  bool add_scale(ir::Expr e) {
    bool usable = is_float(e->dtype) && e->dtype != DType::Float64;
    visit(e, [&](ir::Expr part) {
      usable &= part->op != ir::ExprOp::Leaf && part->op != ir::ExprOp::Reduce;
    });
    const bool by_row = depends_on(e, rows_), by_column = depends_on(e, columns_);
    if (!usable || (by_row && by_column)) return false;
    scales.one &= !by_row && !by_column;
    ir::Expr& scale = by_column ? scales.column : scales.row;
    e = pool_.cast(DType::Float32, e);
    scale = scale ? pool_.mul(scale, e) : e;
    return true;
  }

  ir::ExprPool& pool_;
  ir::Expr product_;
  const std::vector<ir::Expr>&rows_, &columns_;
  int products_ = 0;
};

}  // namespace

std::optional<LineScales> line_scales(ir::ExprPool& pool, ir::Expr term, ir::Expr product,
                                      const std::vector<ir::Expr>& rows,
                                      const std::vector<ir::Expr>& columns) {
  Factors factors(pool, product, rows, columns);
  if (!factors.add(term) || factors.products() != 1) return std::nullopt;
  return factors.scales;
}

}  // namespace redfuser::codegen
