#include "cpu/steps/cascade/cascade_builder.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cpu/steps/cascade/magnitude.h"
#include "cpu/steps/cascade/shared_terms.h"
#include "cpu/steps/column_choice.h"
#include "cpu/steps/step_kernel.h"
#include "cpu/tile/product_layout.h"
#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

// Leaf numbers of values before the current tile.
constexpr int64_t kOldState = int64_t{1} << 32, kOldCount = 1;

class CascadeBuilder {
 public:
  // `growing`: null for fixed sizes.
  CascadeBuilder(const StepForm& form, CascadePlan& plan, const SpecializedStreaming& s,
                 CascadeRows kind, GrowingExtents* growing)
      : resident_(kind != CascadeRows::Streamed),
        by_parts_(kind == CascadeRows::WholeByParts),
        form_(form),
        growing_(growing),
        pool_(plan.pool),
        program_(plan.program),
        s_(s),
        builder_(pool_, program_, [this](int64_t value) {
          return memory_of(form_, static_cast<ir::ValueId>(value));
        }) {}

  void build() {
    for (ir::Expr axis : s_.outer) builder_.set_outer(axis);
    if (growing_ != nullptr) growing_->set_axes(builder_, s_.form.cascade.rows, s_.stream);
    builder_.set_rows(s_.form.cascade.rows);
    mark_old_leaves();
    for (ir::Expr* e : s_.expressions()) {
      visit(*e, [&](ir::Expr node) {
        if (node->op == ir::ExprOp::Leaf) leaves_.insert(node);
      });
    }
    scope_ = resident_ ? builder_.fixed_scope(s_.stream) : builder_.looped_scope(s_.stream);
    if (s_.length > 0) {
      make_states();
      if (resident_) {
        fold_tile();
      } else {
        builder_.in_column_loop(
            scope_, 0, [&] { fold_tile(); }, true);
      }
    }
    finish();
    write_outputs();
  }

  int scope() const { return scope_; }

 private:
  struct State {
    RegisterId value = kNoRegister;    // where the fold accumulates
    RegisterId current = kNoRegister;  // its name after the present tile
    RegisterId old = kNoRegister;      // a copy from before the tile, where others need it
    TileBuilder::Ranked list{kNoRegister, kNoRegister};
    int columns = kNoScope;
  };

  bool ranked(size_t k) const { return picks_element(s_.form.accumulators[k].reduction); }

  // Transports speak of states and counts from before the tile: those leaves get numbers of their
  // own, so that one expression never has two values.
  void mark_old_leaves() {
    for (auto& fold : s_.form.accumulators) {
      if (!fold.transport) continue;
      fold.transport = pool_.rewrite(fold.transport, [&](ir::Expr e) -> ir::Expr {
        if (e->op != ir::ExprOp::Leaf) return nullptr;
        if (e->leaf_kind == ir::LeafKind::State) {
          return pool_.leaf(ir::LeafKind::State, e->integer + kOldState, e->dtype);
        }
        if (e->leaf_kind == ir::LeafKind::Count) {
          return pool_.leaf(ir::LeafKind::Count, kOldCount, e->dtype);
        }
        return nullptr;
      });
    }
  }

  bool uses(ir::Expr expr, ir::LeafKind kind, int64_t index) const {
    bool found = false;
    visit(expr, [&](ir::Expr e) {
      found |= e->op == ir::ExprOp::Leaf && e->leaf_kind == kind && e->integer == index;
    });
    return found;
  }

  void bind(ir::LeafKind kind, int64_t index, RegisterId r) {
    for (ir::Expr leaf : leaves_) {
      if (leaf->leaf_kind != kind || leaf->integer != index) continue;
      builder_.bind(leaf, builder_.converted(r, elem_of(leaf->dtype)));
    }
  }

  void make_states() {
    for (size_t k = 0; k < s_.form.accumulators.size(); ++k) {
      const auto& fold = s_.form.accumulators[k];
      State state;
      if (ranked(k)) {
        state.list = builder_.make_ranked(elem_of(fold.dtype), true, keep_of(k), 0);
      } else if (fold.columns.empty()) {
        state.value = builder_.identity(fold.reduction, fold.dtype, Shape::Rows, kNoScope, 0);
      } else {
        state.columns = builder_.fixed_scope(fold.columns);
        state.value = builder_.identity(fold.reduction, fold.dtype, Shape::Tile, state.columns, 0);
      }
      bool needed_later = false;
      for (size_t j = k + 1; j < s_.form.accumulators.size() && !resident_; ++j) {
        needed_later |= s_.form.accumulators[j].transport &&
                        uses(s_.form.accumulators[j].transport, ir::LeafKind::State,
                             static_cast<int64_t>(k) + kOldState);
      }
      if (needed_later) {
        const Register& r = builder_.info(state.value);
        state.old = builder_.identity(fold.reduction, fold.dtype, r.shape, r.scope, 0);
      }
      states_.push_back(state);
    }
    old_references_.assign(s_.form.references.size(), kNoRegister);
    for (size_t r = 0; r < s_.form.references.size() && !resident_; ++r) {
      old_references_[r] = builder_.identity(ir::Reduction::Sum, s_.form.references[r].value->dtype,
                                             Shape::Rows, kNoScope, 0);
    }
  }

  int64_t keep_of(size_t k) const {
    return is_arg(s_.form.accumulators[k].reduction) ? 1 : s_.form.accumulators[k].k;
  }

  // One tile: old values aside, then every fold in order, then the references of the next tile.
  void fold_tile() {
    if (!resident_) {
      builder_.after_first(scope_, [&] {
        for (State& state : states_) {
          if (state.old != kNoRegister) builder_.copy(state.old, state.value, builder_.depth());
        }
      });
    }
    bind(ir::LeafKind::Count, 0, count(true));
    std::vector<RegisterId> references(s_.form.references.size(), kNoRegister);
    for (size_t k = 0; k < s_.form.accumulators.size(); ++k) {
      if (resident_) bind_results(stages_ready(s_.form, k));
      make_references(k, references);
      transport(k);
      lift(k);
    }
    for (size_t r = 0; r < references.size() && !resident_; ++r) {
      if (references[r] != kNoRegister) {
        builder_.copy(old_references_[r], references[r], builder_.depth());
      }
    }
  }

  RegisterId count(bool after) {
    if (resident_) return builder_.constant(Elem::I64, 0, after ? s_.length : 0);
    const RegisterId r = builder_.make(Elem::I64, Shape::Scalar, kNoScope, builder_.depth());
    builder_.emit(std::make_unique<Count>(r, scope_, after), builder_.depth());
    return r;
  }

  void make_references(size_t k, std::vector<RegisterId>& references) {
    for (size_t r = 0; r < references.size(); ++r) {
      const cascade::Reference& reference = s_.form.references[r];
      if (references[r] != kNoRegister || static_cast<size_t>(reference.ready_after) > k) continue;
      references[r] = builder_.spread(builder_.compile(reference.value), Shape::Rows, kNoScope);
      bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), references[r]);
    }
  }

  // The first tile has nothing to transport: an empty state stays the identity.
  void transport(size_t k) {
    ir::Expr expr = s_.form.accumulators[k].transport;
    if (!expr || resident_) return;
    builder_.after_first(scope_, [&] {
      const int depth = builder_.depth();
      for (size_t j = 0; j < states_.size(); ++j) {
        const State& state = states_[j];
        if (state.value == kNoRegister) continue;
        const RegisterId from = state.old != kNoRegister ? state.old : state.value;
        bind(ir::LeafKind::State, static_cast<int64_t>(j) + kOldState,
             builder_.renamed(from, depth));
      }
      for (size_t r = 0; r < old_references_.size(); ++r) {
        bind(ir::LeafKind::OldResult, static_cast<int64_t>(r),
             builder_.renamed(old_references_[r], depth));
      }
      if (uses(expr, ir::LeafKind::Count, kOldCount))
        bind(ir::LeafKind::Count, kOldCount, count(false));
      replace(k, expr, depth);
    });
  }

  // state = expr, in place where expr is state · factor.
  void replace(size_t k, ir::Expr expr, int depth) {
    const RegisterId state = states_[k].value;
    const bool scales = expr->op == ir::ExprOp::Mul && expr->args.size() == 2 &&
                        expr->args[0]->op == ir::ExprOp::Leaf;
    if (!scales) {
      builder_.copy(state,
                    builder_.spread(builder_.compile(expr), builder_.info(state).shape,
                                    builder_.info(state).scope),
                    depth);
      return;
    }
    const Elem elem = builder_.info(state).elem;
    const RegisterId a = builder_.converted(builder_.compile(expr->args[0]), elem);
    const RegisterId b = builder_.converted(builder_.compile(expr->args[1]), elem);
    auto scale = std::make_unique<Binary>(
        kernels().binary[static_cast<int>(elem)][static_cast<int>(BinaryOp::Mul)], state, a, b);
    scale->elementwise = false;
    builder_.emit(std::move(scale), depth);
  }

  void lift(size_t k) {
    const auto& fold = s_.form.accumulators[k];
    State& state = states_[k];
    if (ranked(k)) {
      builder_.keep_best(fold.reduction, state.list, keep_of(k), builder_.compile(fold.lift),
                         scope_);
      return;
    }
    if (fold.columns.empty()) {
      builder_.reduce_into(fold.reduction, state.value, builder_.compile(fold.lift), scope_);
    } else {
      builder_.gemm_into(state.value, fold.lift, scope_, state.columns);
    }
    state.current = builder_.renamed(state.value, builder_.depth());
    bind(ir::LeafKind::State, static_cast<int64_t>(k), state.current);
  }

  void finish() {
    bind(ir::LeafKind::Count, 0, builder_.constant(Elem::I64, 0, s_.length));
    for (size_t k = 0; k < states_.size(); ++k) {
      State& state = states_[k];
      if (is_arg(s_.form.accumulators[k].reduction)) {
        bind(ir::LeafKind::State, static_cast<int64_t>(k), first_index(state.list));
      } else if (state.value != kNoRegister && !resident_) {
        bind(ir::LeafKind::State, static_cast<int64_t>(k), builder_.renamed(state.value, 0));
      }
    }
    bind_results(s_.form.cascade.stages.size());
  }

  // Of the stages before `end` that have none yet.
  void bind_results(size_t end) {
    for (; bound_results_ < end; ++bound_results_) {
      const size_t i = bound_results_;
      const cascade::Stage& stage = s_.form.cascade.stages[i];
      ir::Expr result = s_.form.finish[i];
      const auto number = static_cast<int64_t>(i);
      if (is_ranked(stage.reduction)) {
        RF_CHECK(result->op == ir::ExprOp::Leaf, "the finish of a ranked stage is no state");
        bind_ranked(i);
      } else if (s_.length == 0) {
        bind(ir::LeafKind::Result, number,
             builder_.identity(stage.reduction, stage.dtype, Shape::Rows, kNoScope, 0));
      } else {
        bind(ir::LeafKind::Result, number, builder_.compile(result));
      }
    }
  }

  RegisterId first_index(const TileBuilder::Ranked& list) {
    const RegisterId index = builder_.make(Elem::I64, Shape::Rows, kNoScope, 0);
    builder_.emit(
        std::make_unique<TakeColumn>(index, list.indices, builder_.constant(Elem::I64, 0, 0),
                                     std::min<int64_t>(1, s_.length)),
        0);
    return index;
  }

  void bind_ranked(size_t i) {
    const auto number = static_cast<int64_t>(i);
    TileBuilder::Ranked list;
    int64_t filled = 0;
    if (s_.length == 0) {
      list = builder_.make_ranked(elem_of(s_.form.cascade.stages[i].dtype), true, 1, 0);
    } else {
      const auto k = static_cast<size_t>(s_.form.finish[i]->integer);
      list = states_[k].list;
      filled = std::min(keep_of(k), s_.length);
    }
    builder_.bind_ranked(-(2 * number + 2), list.values, filled);
    builder_.bind_ranked(-(2 * number + 3), list.indices, filled);
  }

  void write_outputs() {
    bool maps_back = false;
    for (size_t i = 0; i < s_.form.cascade.outputs.size(); ++i) {
      if (s_.form.cascade.outputs[i].maps_back) {
        maps_back = true;
      } else {
        write(i, columns_of(s_.form.cascade.outputs[i]));
      }
    }
    if (!maps_back || s_.length == 0) return;
    auto write_all = [&] {
      for (size_t i = 0; i < s_.form.cascade.outputs.size(); ++i) {
        if (!s_.form.cascade.outputs[i].maps_back) continue;
        by_parts_ ? write_parts(i) : write(i, scope_);
      }
    };
    if (resident_) {
      write_all();
    } else {
      builder_.in_column_loop(scope_, 0, write_all);
    }
  }

  // The streamed axis in the parts that indices have of it: a loop over the outer ones, of which
  // each has reads at equal distances along the others.
  void write_parts(size_t i) {
    const auto& output = s_.form.cascade.outputs[i];
    std::vector<ir::Expr> parts = s_.stream, indices = output.axes, bodies{output.body}, writes;
    std::vector<ir::Expr*> all{&bodies[0]};
    for (ir::Expr& e : indices) all.push_back(&e);
    split_axes(pool_, parts, all);
    const Dims memory = memory_of(form_, output.value);
    writes.push_back(flat_offset(pool_, indices, memory));
    const AxisSplit split = choose_columns(pool_, parts, {bodies, writes}, [&](int64_t value) {
      return memory_of(form_, static_cast<ir::ValueId>(value));
    });
    const auto loop = [&](const auto& self, size_t number) -> void {
      if (number < split.rows.size()) {
        return builder_.in_axis_loop(split.rows[number], builder_.depth(),
                                     [&] { self(self, number + 1); });
      }
      builder_.store(static_cast<int>(i), dtype_of(form_, output.value), memory, indices,
                     builder_.compile_to_store(bodies[0]), builder_.fixed_scope(split.columns));
    };
    loop(loop, 0);
  }

  void write(size_t i, int scope) {
    const auto& output = s_.form.cascade.outputs[i];
    const DType dtype = dtype_of(form_, output.value);
    builder_.store(static_cast<int>(i), dtype, memory_of(form_, output.value), output.axes,
                   builder_.compile_to_store(output.body), scope);
  }

  // The columns of an output: those of the stage that it shows, or axes of its own (a rank).
  int columns_of(const cascade::CascadeOutput& output) {
    std::vector<ir::Expr> others;
    for (ir::Expr index : output.axes) {
      visit(index, [&](ir::Expr e) {
        if (e->op != ir::ExprOp::Axis) return;
        auto in = [&](const std::vector<ir::Expr>& list) {
          return std::find(list.begin(), list.end(), e) != list.end();
        };
        if (!in(s_.outer) && !in(s_.form.cascade.rows) && !in(others)) others.push_back(e);
      });
    }
    if (others.empty()) return kNoScope;
    for (const auto& fold : s_.form.accumulators) {
      const bool same = std::all_of(others.begin(), others.end(), [&](ir::Expr axis) {
        return std::find(fold.columns.begin(), fold.columns.end(), axis) != fold.columns.end();
      });
      if (same) return builder_.fixed_scope(fold.columns);
    }
    return builder_.fixed_scope(others);
  }

  const bool resident_, by_parts_;
  const StepForm& form_;
  GrowingExtents* const growing_;
  ir::ExprPool& pool_;
  TileProgram& program_;
  SpecializedStreaming s_;
  TileBuilder builder_;
  struct ById {
    bool operator()(ir::Expr a, ir::Expr b) const { return a->id < b->id; }
  };
  std::set<ir::Expr, ById> leaves_;
  std::vector<State> states_;
  std::vector<RegisterId> old_references_;
  size_t bound_results_ = 0;
  int scope_ = kNoScope;
};

}  // namespace

int build_cascade(const StepForm& form, CascadePlan& plan, const SpecializedStreaming& s,
                  CascadeRows kind, GrowingExtents* growing) {
  CascadeBuilder builder(form, plan, s, kind, growing);
  builder.build();
  return builder.scope();
}

}  // namespace redfuser::cpu
