#include "codegen/attention/recognize.h"

#include <algorithm>
#include <set>

#include "ir/contraction.h"

namespace redfuser::codegen {
namespace {

ir::Expr without_casts(ir::Expr e) {
  while (e->op == ir::ExprOp::Cast && is_float(e->dtype)) e = e->args[0];
  return e;
}

// e = weight · read, where only the read depends on the column.
bool split_value(ir::ExprPool& pool, ir::Expr e, ir::Expr column, ir::Expr& weight,
                 ir::Expr& read) {
  e = without_casts(e);
  if (e->op == ir::ExprOp::Read) {
    weight = nullptr;
    read = e;
    return true;
  }
  if (e->op == ir::ExprOp::Mul && e->args.size() == 2) {
    const bool left = e->args[0]->depends_on(column), right = e->args[1]->depends_on(column);
    if (left == right) return false;
    ir::Expr rest = left ? e->args[1] : e->args[0];
    if (!split_value(pool, left ? e->args[0] : e->args[1], column, weight, read)) return false;
    weight = weight ? pool.mul(weight, pool.cast(weight->dtype, rest)) : rest;
    return true;
  }
  if (e->op == ir::ExprOp::Div && !e->args[1]->depends_on(column)) {
    if (!split_value(pool, e->args[0], column, weight, read) || !weight) return false;
    weight = pool.div(weight, pool.cast(weight->dtype, e->args[1]));
    return true;
  }
  return false;
}

bool positive_constant(ir::Expr extent) { return extent->is_constant() && extent->integer >= 1; }

class Recogniser {
 public:
  Recogniser(StepBuilder& builder, const fuse::CascadeStep& step)
      : pool_(builder.pool()), streaming_(step.streaming) {
    form_.rows = flat_streaming(builder, step);
  }

  std::optional<AttentionSpec> run() {
    if (!find_columns() || !find_contraction() || !find_types() || !find_independence()) {
      return std::nullopt;
    }
    find_row();
    return form_;
  }

 private:
  bool find_columns() {
    const auto& list = streaming_.accumulators;
    int count = 0;
    for (size_t k = 0; k < list.size(); ++k) {
      if (picks_element(list[k].reduction)) return false;
      if (list[k].dtype == DType::Float64 || !is_float(list[k].dtype)) return false;
      if (list[k].columns.empty()) continue;
      ++count;
      form_.value_accumulator = k;
    }
    if (count != 1) return false;
    const cascade::Accumulator& a = list[form_.value_accumulator];
    if (a.columns.size() != 1 || a.columns[0]->op != ir::ExprOp::Axis) return false;
    if (a.reduction != ir::Reduction::Sum || !positive_constant(a.columns[0]->extent()))
      return false;
    form_.column = a.columns[0];
    std::erase(form_.rows.cascade.rows, form_.column);
    ir::Expr lift = form_.rows.accumulators[form_.value_accumulator].lift;
    if (!split_value(pool_, lift, form_.column, form_.weight, form_.value)) return false;
    if (!form_.weight || !form_.value->depends_on(streaming_.cascade.stream)) return false;
    for (const auto& output : form_.rows.outputs) {
      if (output.maps_back || !output.extra.empty()) return false;
    }
    return true;
  }

  bool find_contraction() {
    std::set<ir::Expr> found;
    std::vector<ir::Expr> roots = {form_.weight};
    for (size_t k = 0; k < form_.rows.accumulators.size(); ++k) {
      if (!form_.is_value(k)) roots.push_back(form_.rows.accumulators[k].lift);
    }
    for (ir::Expr root : roots) {
      visit(root, [&](ir::Expr e) {
        if (e->op == ir::ExprOp::Reduce && e->depends_on(streaming_.cascade.stream))
          found.insert(e);
      });
    }
    if (found.size() != 1) return false;
    form_.contraction = *found.begin();
    auto contraction = as_contraction(pool_, form_.contraction);
    if (!contraction || !positive_constant(contraction->axis->extent())) return false;
    form_.depth = contraction->axis;
    form_.scale = contraction->scale;
    form_.query = without_casts(contraction->a);
    form_.key = without_casts(contraction->b);
    if (form_.query->depends_on(streaming_.cascade.stream)) std::swap(form_.query, form_.key);
    return form_.key->depends_on(streaming_.cascade.stream) &&
           !form_.query->depends_on(streaming_.cascade.stream) &&
           form_.query->op == ir::ExprOp::Read && form_.key->op == ir::ExprOp::Read;
  }

  bool find_types() {
    const DType q = form_.query->dtype, k = form_.key->dtype, v = form_.value->dtype;
    for (const DType dtype : {q, k, v}) {
      if (dtype != DType::Float16 && dtype != DType::BFloat16 && dtype != DType::Float32)
        return false;
    }
    const cascade::Accumulator& a = streaming_.accumulators[form_.value_accumulator];
    const DType product = streaming_.cascade.stages.at(static_cast<size_t>(a.stage)).dtype;
    form_.rounded_weights = size_of(v) == 2 && ((q == k && k == v) || size_of(product) == 2);
    // Weights of other forms may exceed the range of halves.
    return !form_.rounded_weights || v != DType::Float16 || a.form == cascade::Form::Rescaled;
  }

  // The column state appears only in its own transport and in results.
  bool find_independence() const {
    for (size_t k = 0; k < form_.rows.accumulators.size(); ++k) {
      if (form_.is_value(k)) continue;
      if (uses_state(form_.rows.accumulators[k].transport, form_.value_accumulator)) return false;
      if (form_.rows.accumulators[k].lift->depends_on(form_.column)) return false;
    }
    for (const cascade::Reference& reference : form_.rows.references) {
      if (uses_state(reference.value, form_.value_accumulator)) return false;
    }
    return true;
  }

  // Of the axes that only the query has, one with a size known only at run time, else the longest.
  void find_row() {
    auto longer = [](ir::Expr a, ir::Expr b) {
      ir::Expr x = a->extent(), y = b->extent();
      if (!x->is_constant() || !y->is_constant()) return y->is_constant() && !x->is_constant();
      return x->integer > y->integer;
    };
    for (ir::Expr axis : form_.rows.cascade.rows) {
      if (!form_.query->depends_on(axis) || form_.key->depends_on(axis) ||
          form_.value->depends_on(axis)) {
        continue;
      }
      if (!form_.row || longer(axis, form_.row)) form_.row = axis;
    }
    for (ir::Expr axis : form_.rows.cascade.rows) {
      if (axis != form_.row) form_.others.push_back(axis);
    }
  }

  ir::ExprPool& pool_;
  const cascade::Streaming& streaming_;
  AttentionSpec form_{};
};

}  // namespace

std::optional<AttentionSpec> recognize_attention(StepBuilder& builder,
                                                 const fuse::CascadeStep& step) {
  const auto& list = step.streaming.accumulators;
  const bool columns = std::any_of(
      list.begin(), list.end(), [](const cascade::Accumulator& a) { return !a.columns.empty(); });
  if (!columns) return std::nullopt;
  return Recogniser(builder, step).run();
}

}  // namespace redfuser::codegen
