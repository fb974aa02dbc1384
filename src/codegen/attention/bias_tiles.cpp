#include "codegen/attention/bias_tiles.h"

#include <algorithm>
#include <functional>
#include <set>

#include "ir/polynomial.h"
#include "ir/scalars/operations.h"

namespace redfuser::codegen {
namespace {

// Operations of an element that are worth a value in shared memory instead.
constexpr int kManyOperations = 16, kCostlyOperations = 8;
constexpr int kWidestStrip = 4;  // bytes of an element

class Terms {
 public:
  Terms(ir::ExprPool& pool, const AttentionSpec& form)
      : pool_(pool), row_(form.row), key_(form.rows.cascade.stream) {
    ir::Expr last_row = pool.sub(row_->extent(), pool.integer(1));
    diagonal_ = pool.shared_axis("diagonal", pool.add(key_->extent(), last_row));
    key_there_ = pool.add(diagonal_, pool.sub(row_, last_row));
  }

  void look(ir::Expr e) {
    if (!seen_.insert(e).second || !e->depends_on(key_)) return;
    if (storable(e) && costly(e)) {
      if (!e->depends_on(row_)) {
        found_.terms.push_back({e, key_, e, false});
        return;
      }
      ir::Expr value = pool_.substitute(e, {{key_, key_there_}});
      if (!value->depends_on(row_) && !value->depends_on(key_)) {
        found_.terms.push_back({e, diagonal_, value, true});
        return;
      }
      if (e->op == ir::ExprOp::Read && e->integer >= 0) return look_read(e);
    }
    for (ir::Expr arg : e->args) look(arg);
  }

  BiasTiles found() { return std::move(found_); }

 private:
  void look_read(ir::Expr e) {
    auto affine = affine_in(pool_, e->args[0], key_);
    const bool adjacent =
        affine && affine->stride->is_constant(1) && !affine->base->depends_on(key_);
    if (adjacent && static_cast<int>(size_of(e->dtype)) <= kWidestStrip) {
      found_.strips.push_back({e, affine->base});
    } else {
      look(e->args[0]);
    }
  }

  static bool storable(ir::Expr e) {
    if (e->has_leaf || e->dtype == DType::Float64 || e->op == ir::ExprOp::Axis) return false;
    bool reduces = false;
    visit(e, [&](ir::Expr x) { reduces |= x->op == ir::ExprOp::Reduce; });
    return !reduces;
  }

  bool costly(ir::Expr e) const {
    bool reads = false;
    int operations = 0;
    visit(e, [&](ir::Expr x) {
      if (!x->depends_on(key_) || x->op == ir::ExprOp::Axis) return;
      reads |= x->op == ir::ExprOp::Read;
      operations += ir::scalar_op(x->op).costly ? kCostlyOperations : 1;
    });
    return reads || operations >= kManyOperations;
  }

  ir::ExprPool& pool_;
  ir::Expr row_, key_, diagonal_ = nullptr, key_there_ = nullptr;
  std::set<ir::Expr> seen_;
  BiasTiles found_;
};

}  // namespace

int BiasTile::places(int rows, int keys) const {
  return diagonal ? (rows + keys + 2) / 4 * 4 : (keys + 3) / 4 * 4;
}

int BiasTile::bytes() const { return is_float(expr->dtype) || expr->dtype == DType::Bool ? 4 : 8; }

// A warp reads 8 rows of 4 pairs at a time.
int ScoreStrip::pitch(int keys) const { return keys * bytes() + std::max(16, 8 * bytes()); }

BiasTiles bias_tiles(ir::ExprPool& pool, const AttentionSpec& form,
                     const std::vector<const ScoreSpec*>& scores) {
  Terms terms(pool, form);
  for (const ScoreSpec* score : scores) {
    if (score->kept) terms.look(score->kept_factors.rest);
    for (const cascade::Accumulator& accumulator : score->rows.accumulators)
      terms.look(accumulator.lift);
  }
  return terms.found();
}

}  // namespace redfuser::codegen
