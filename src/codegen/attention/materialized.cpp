// An attention cascade of any size in three calls. With s the scores, d the references at the end
// of a row and A the states:
//
//     s = q · kᵀ                    a product
//     w = weight(s, d), A(s)        a row cascade
//     o = finish(A, w · v)          a product with an epilogue
#include <fmt/format.h>

#include <cmath>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {
namespace {

bool has_leaf(ir::Expr root, ir::LeafKind kind, int64_t number) {
  bool found = false;
  visit(root, [&](ir::Expr e) {
    found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == kind && e->integer == number;
  });
  return found;
}

std::optional<double> identity(ir::Reduction reduction) {
  switch (reduction) {
    case ir::Reduction::Sum:
      return 0.0;
    case ir::Reduction::Prod:
      return 1.0;
    case ir::Reduction::Max:
      return -HUGE_VAL;
    case ir::Reduction::Min:
      return HUGE_VAL;
    default:
      return std::nullopt;
  }
}

class MaterializedAttention {
 public:
  MaterializedAttention(StepBuilder& builder, const AttentionSpec& form)
      : builder_(builder),
        pool_(builder.pool()),
        shared_(shared_rows(builder.pool(), form)),
        form_(shared_.form) {
    rows_ = shared_.others;
    rows_.insert(rows_.end(), shared_.shared.begin(), shared_.shared.end());
  }

  bool run() {
    if (!computable()) return false;
    add_scores();
    add_weights();
    add_values();
    return true;
  }

 private:
  bool computable() {
    const FlatStreaming& form = form_.rows;
    if (form_.value_accumulator + 1 != form.accumulators.size()) return false;
    if (form.outputs.size() != 1 || !form.outputs[0].offset->depends_on(form_.column)) return false;
    for (const cascade::Accumulator& a : form.accumulators) {
      if (!identity(a.reduction)) return false;
    }
    for (const cascade::Stage& stage : form.cascade.stages) {
      if (!identity(stage.reduction)) return false;
    }
    result_ = result();
    return result_ != nullptr;
  }

  ir::Expr place(const std::vector<ir::Expr>& axes) {
    return row_major(pool_, axes, extents_of(pool_, axes));
  }
  std::vector<ir::Expr> with(std::vector<ir::Expr> axes, ir::Expr last) const {
    axes.push_back(last);
    return axes;
  }
  ir::Expr stream() const { return form_.rows.cascade.stream; }

  void add_scores() {
    const std::vector<ir::Expr> axes = with(rows_, stream());
    // As the graph rounds them.
    const DType dtype =
        size_of(form_.contraction->dtype) == 2 ? form_.query->dtype : DType::Float32;
    scores_ = builder_.add_scratch(dtype, product_of(pool_, extents_of(pool_, axes)));
    fuse::ProductStep step;
    step.value = -1;
    step.batch = shared_.others;
    step.m = shared_.shared;
    step.n = {stream()};
    step.k = form_.depth;
    step.a = form_.query;
    step.b = {form_.key};
    step.epilogue = pool_.cast(dtype, pool_.leaf(ir::LeafKind::Product, 0, DType::Float32));
    step.axes = axes;
    add_product_at(builder_, step, scores_, place(axes), "scores\n" + form_.rows.comment);
  }

  // Over the score in memory.
  ir::Expr scored(ir::Expr e) {
    ir::Expr score =
        pool_.cast(form_.contraction->dtype,
                   pool_.read(scores_, builder_.dtype_of(scores_), {place(with(rows_, stream()))}));
    if (form_.scale) score = pool_.mul(score, pool_.cast(score->dtype, form_.scale));
    return pool_.substitute(e, {{form_.contraction, score}});
  }

  void add_weights() {
    FlatStreaming rows = form_.rows;
    rows.cascade.rows = rows_;
    rows.accumulators.pop_back();
    for (cascade::Accumulator& a : rows.accumulators) a.lift = scored(a.lift);
    rows.finish.clear();
    rows.cascade.stages.clear();
    rows.outputs.clear();
    const std::vector<ir::Expr> axes = with(rows_, stream());
    weights_ = builder_.add_scratch(form_.value->dtype, product_of(pool_, extents_of(pool_, axes)));
    ir::Expr weight = pool_.rewrite(scored(form_.weight), [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::NewResult) return nullptr;
      return pool_.cast(e->dtype, rows.references[static_cast<size_t>(e->integer)].value);
    });
    rows.outputs.push_back({weights_, weight, place(axes), {}, true});
    for (size_t k = 0; k < rows.accumulators.size(); ++k) {
      const auto number = static_cast<int64_t>(k);
      if (!has_leaf(result_, ir::LeafKind::State, number)) continue;
      const DType dtype = rows.accumulators[k].dtype;
      const int64_t state =
          builder_.add_scratch(dtype, product_of(pool_, extents_of(pool_, rows_)));
      ir::Expr leaf = pool_.leaf(ir::LeafKind::State, number, dtype);
      rows.outputs.push_back({state, leaf, place(rows_), {}, false});
      states_.emplace_back(number, pool_.read(state, dtype, {place(rows_)}));
    }
    add_folds(builder_, rows);
  }

  // The output over states: the results of the stages stand for themselves.
  ir::Expr result() {
    ir::Expr body = form_.rows.outputs[0].body;
    ir::Expr length = form_.rows.length();
    for (size_t i = form_.rows.finish.size(); i-- > 0;) {
      ir::Expr value = form_.rows.finish[i];
      if (!length->is_constant()) {
        ir::Expr none =
            pool_.number(*identity(form_.rows.cascade.stages[i].reduction), value->dtype);
        value =
            pool_.select(pool_.make(ir::ExprOp::Equal, {length, pool_.integer(0)}), none, value);
      }
      body = pool_.rewrite(body, [&](ir::Expr e) -> ir::Expr {
        const bool found = e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Result &&
                           e->integer == static_cast<int64_t>(i);
        return found ? pool_.cast(e->dtype, value) : nullptr;
      });
    }
    return pool_.rewrite(body, [&](ir::Expr e) -> ir::Expr {
      const bool count = e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Count;
      return count ? pool_.cast(e->dtype, length) : nullptr;
    });
  }

  void add_values() {
    const FlatStreaming::Output& output = form_.rows.outputs[0];
    fuse::ProductStep step;
    step.value = -1;
    step.batch = shared_.others;
    step.m = shared_.shared;
    step.n = {form_.column};
    step.k = stream();
    step.a = pool_.read(weights_, form_.value->dtype, {place(with(rows_, stream()))});
    step.b = {form_.value};
    step.axes = with(rows_, form_.column);
    step.epilogue = pool_.rewrite(result_, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::State) return nullptr;
      for (const auto& [number, read] : states_) {
        if (e->integer == number) return pool_.cast(e->dtype, read);
      }
      return pool_.leaf(ir::LeafKind::Product, 0, DType::Float32);
    });
    step.epilogue = pool_.cast(builder_.dtype_of(output.value), step.epilogue);
    add_product_at(builder_, step, output.value, output.offset, "values\n" + form_.rows.comment);
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const SharedRows shared_;
  const AttentionSpec& form_;
  std::vector<ir::Expr> rows_;
  ir::Expr result_ = nullptr;
  int64_t scores_ = -1, weights_ = -1;
  std::vector<std::pair<int64_t, ir::Expr>> states_;
};

}  // namespace

bool add_materialized_attention(StepBuilder& builder, const AttentionSpec& form) {
  return MaterializedAttention(builder, form).run();
}

}  // namespace redfuser::codegen
