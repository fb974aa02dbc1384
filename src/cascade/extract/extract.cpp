#include "cascade/extract/extract.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "cascade/extract/axis_match.h"
#include "cascade/extract/merge_loops.h"
#include "cascade/extract/split_rows.h"
#include "ir/contraction.h"
#include "ir/expr_map.h"

namespace redfuser::cascade {
namespace {

struct NotACascade {
  std::string reason;
};

bool contains(const std::vector<ir::Expr>& list, ir::Expr e) {
  return std::find(list.begin(), list.end(), e) != list.end();
}

class Extractor {
 public:
  Extractor(ir::ExprPool& pool, std::vector<LoweredOutput> outputs, Axes axes)
      : pool_(pool), outputs_(std::move(outputs)), axes_(axes) {}

  Extraction run() {
    for (LoweredOutput& output : outputs_) {
      output.body = merge_loops(pool_, output.body, axes_);
      loops_.push_back(split_rows(pool_, output, axes_));
    }
    unify_axes();
    for (const LoweredOutput& output : outputs_) collect(output.body);
    if (stages_.empty()) throw NotACascade{"no reduction"};
    find_rows();
    result_.cascade.stream = cascade_axis(pool_, axes_, "j", extent_);
    for (ir::Expr reduce : stages_) add_stage(reduce);
    for (size_t i = 0; i < outputs_.size(); ++i) add_output(outputs_[i], loops_[i]);
    if (result_.maps_back && result_.has_producer) {
      throw NotACascade{"an output along the streamed axis would compute its contraction twice"};
    }
    // A single row reads its matrix once, fused or not; fusion pays only if the values are read
    // along with it.
    if (shares_rows_ && !result_.has_columns) {
      throw NotACascade{"an inner contraction has no row of its own"};
    }
    return std::move(result_);
  }

 private:
  // Outputs with reductions follow the first of these; elements of the row follow all of them.
  void unify_axes() {
    std::vector<size_t> reducing, plain;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      (top_reductions(outputs_[i].body).empty() ? plain : reducing).push_back(i);
    }
    if (reducing.empty()) return;
    const std::vector<ir::Expr> first = top_reductions(outputs_[reducing[0]].body);
    for (const size_t i : reducing) {
      if (i == reducing[0]) continue;
      const std::vector<ir::Expr> own = top_reductions(outputs_[i].body);
      if (std::all_of(own.begin(), own.end(), [&](ir::Expr e) { return contains(first, e); })) {
        rename_axes(i, own);
        continue;
      }
      rename_axes(i);
      AxisMatch matched;
      bool any = false;
      for (ir::Expr other : top_reductions(outputs_[i].body)) {
        for (ir::Expr reduce : first) {
          AxisMatch match = matched;
          if (!match.match(reduce, other)) continue;
          matched = match;
          any = true;
          break;
        }
      }
      if (!any) throw NotACascade{"two outputs share no reduction"};
      replace_axes(i, matched.substitution());
    }
    for (const size_t i : plain) {
      rename_axes(i);
      const auto match = match_element(outputs_[i].body, reducing);
      if (!match) throw NotACascade{"two outputs share no reduction"};
      replace_axes(i, match->substitution());
    }
  }

  // Where a body of `others` has this element of a row, outside of reductions if anywhere there.
  std::optional<AxisMatch> match_element(ir::Expr element,
                                         const std::vector<size_t>& others) const {
    std::optional<AxisMatch> reduced, found;
    for (const size_t other : others) {
      ir::Expr body = outputs_[other].body;
      visit(body, [&](ir::Expr e) {
        AxisMatch match;
        if (found || e->op != element->op || !match.match(e, element)) return;
        const bool outside = std::includes(body->free_axes.begin(), body->free_axes.end(),
                                           e->free_axes.begin(), e->free_axes.end());
        (outside ? found : reduced) = match;
      });
    }
    return found ? found : reduced;
  }

  // Outputs use the same axes: the rows of a transposed output would otherwise be confused with the
  // first one's. Those that an expression of `matched` depends on are right already.
  void rename_axes(size_t number, const std::vector<ir::Expr>& matched = {}) {
    std::vector<std::pair<ir::Expr, ir::Expr>> map;
    for (size_t i = 0; i < loops_[number].size(); ++i) {
      ir::Expr axis = loops_[number][i];
      if (std::any_of(matched.begin(), matched.end(),
                      [&](ir::Expr e) { return e->depends_on(axis); })) {
        continue;
      }
      map.emplace_back(axis, pool_.shared_axis(fmt::format("o{}", i), axis->extent()));
    }
    replace_axes(number, map);
  }

  void replace_axes(size_t number, const std::vector<std::pair<ir::Expr, ir::Expr>>& map) {
    if (map.empty()) return;
    LoweredOutput& output = outputs_[number];
    output.body = pool_.substitute(output.body, map);
    for (ir::Expr& axis : output.axes) axis = pool_.substitute(axis, map);
    for (ir::Expr& axis : loops_[number]) axis = pool_.substitute(axis, map);
  }

  static std::vector<ir::Expr> top_reductions(ir::Expr body) {
    std::vector<ir::Expr> found;
    ir::ExprMap seen;
    const auto go = [&](const auto& self, ir::Expr e, ir::Expr inside) -> void {
      if (!seen.add(e) || e->op == ir::ExprOp::Axis) return;
      if (e->op == ir::ExprOp::Reduce && !(inside && e->depends_on(inside->bound_axis()))) {
        self(self, e->body(), e);
        found.push_back(e);
        return;
      }
      for (ir::Expr arg : e->args) self(self, arg, inside);
    };
    go(go, body, nullptr);
    return found;
  }

  // Stages in order of dependence: the stages that a body uses come first.
  void collect(ir::Expr e) {
    if (!seen_.add(e) || e->op == ir::ExprOp::Axis) return;
    if (e->op != ir::ExprOp::Reduce) {
      for (ir::Expr arg : e->args) collect(arg);
      return;
    }
    if (extent_ && e->extent() != extent_) {
      throw NotACascade{fmt::format("reductions run over axes of {} and {} elements",
                                    to_string(pool_, extent_), to_string(pool_, e->extent()))};
    }
    extent_ = e->extent();
    collect_inner(e->body(), e->bound_axis());
    if (is_ranked(e->reduction)) {
      for (ir::Expr other : stages_) {
        if (is_ranked(other->reduction) && other->body() == e->body() &&
            other->reduction == e->reduction) {
          return;
        }
      }
    }
    stages_.push_back(e);
  }

  void collect_inner(ir::Expr e, ir::Expr stream) {
    if (e->op == ir::ExprOp::Axis) return;
    if (e->op == ir::ExprOp::Reduce) {
      if (!e->depends_on(stream)) return collect(e);
      check_producer(e, stream);
      return;
    }
    for (ir::Expr arg : e->args) {
      if (arg->op != ir::ExprOp::Axis && inner_seen_.insert({arg, stream}).second) {
        collect_inner(arg, stream);
      }
    }
  }

  void check_producer(ir::Expr e, ir::Expr stream) {
    auto contraction = as_contraction(pool_, e);
    if (!contraction) throw NotACascade{"an inner reduction is no contraction of two tensors"};
    const bool a = contraction->a->depends_on(stream), b = contraction->b->depends_on(stream);
    ir::Expr fixed = a ? contraction->b : contraction->a;
    ir::Expr moving = a ? contraction->a : contraction->b;
    if (a == b) throw NotACascade{"both operands of an inner contraction move along the axis"};
    bool own_row = false;
    for (uint32_t axis : fixed->free_axes) {
      if (axis == static_cast<uint32_t>(contraction->axis->integer)) continue;
      own_row |= !std::binary_search(moving->free_axes.begin(), moving->free_axes.end(), axis);
    }
    shares_rows_ |= !own_row;
    result_.has_producer = true;
  }

  std::vector<ir::Expr> free_axes_of(ir::Expr e) const {
    std::vector<ir::Expr> axes;
    visit(e, [&](ir::Expr node) {
      if (node->op == ir::ExprOp::Axis && e->depends_on(node) && !contains(axes, node)) {
        axes.push_back(node);
      }
    });
    return axes;
  }

  // Axes of the reductions nested in a stage are rows; further axes of the stage are columns.
  void find_rows() {
    for (ir::Expr reduce : stages_) {
      std::vector<ir::Expr> inner;
      for (ir::Expr other : stages_) {
        if (other != reduce && uses(reduce->body(), other)) {
          for (ir::Expr axis : free_axes_of(other)) inner.push_back(axis);
        }
      }
      std::vector<ir::Expr>& columns = columns_[reduce];
      for (ir::Expr axis : free_axes_of(reduce)) {
        const bool rank = is_ranked(reduce->reduction) && reduce->args[2]->depends_on(axis);
        if (rank) continue;
        const bool new_axis = inner.empty() ? holds_producer(reduce) : !contains(inner, axis);
        if (new_axis && role_of(reduce, axis) == Role::Column) {
          columns.push_back(axis);
        } else if (!contains(rows_, axis)) {
          rows_.push_back(axis);
        }
      }
    }
    for (ir::Expr reduce : stages_) {
      check_no_repetition(reduce);
      for (ir::Expr row : rows_) {
        if (!reduce->depends_on(row)) throw NotACascade{"a stage is the same for several rows"};
      }
    }
    for (auto& [reduce, columns] : columns_) {
      for (ir::Expr column : columns) {
        if (contains(rows_, column)) throw NotACascade{"an axis is a row and a column"};
      }
      result_.has_columns |= !columns.empty();
    }
    // Outermost first, in the order of the first output's dimensions.
    std::vector<ir::Expr> ordered;
    for (const std::vector<ir::Expr>& loops : loops_) {
      for (ir::Expr axis : loops) {
        if (contains(rows_, axis) && !contains(ordered, axis)) ordered.push_back(axis);
      }
    }
    if (ordered.size() != rows_.size()) throw NotACascade{"a row is reduced away"};
    result_.cascade.rows = ordered;
  }

  // If some digit of a row axis (in mixed radix) is unused, as in ⌊axis/k⌋ alone, the same row
  // would be computed several times.
  void check_no_repetition(ir::Expr reduce) const {
    for (ir::Expr axis : free_axes_of(reduce)) {
      std::vector<Digits> digits;
      bool fine = false;
      ir::ExprMap seen;
      const auto go = [&](const auto& self, ir::Expr e) -> void {
        if (!e->depends_on(axis) || !seen.add(e)) return;
        if (auto part = digits_of(e, axis)) return digits.push_back(*part);
        fine |= e->op == ir::ExprOp::FloorMod;
        if (e->op == ir::ExprOp::FloorDiv) return;
        for (ir::Expr arg : e->args) self(self, arg);
      };
      go(go, reduce);
      if (!fine && !covered(digits, axis)) {
        throw NotACascade{"an output repeats rows along one of its axes"};
      }
    }
  }

  // The part ⌊axis/low⌋ mod (high/low) of an axis; without the modulo if high is null.
  struct Digits {
    ir::Expr low = nullptr, high = nullptr;
  };

  std::optional<Digits> digits_of(ir::Expr e, ir::Expr axis) const {
    if (e == axis) return Digits{pool_.integer(1), nullptr};
    if (e->op != ir::ExprOp::FloorDiv && e->op != ir::ExprOp::FloorMod) return std::nullopt;
    auto inner = digits_of(e->args[0], axis);
    if (!inner || e->args[1]->depends_on(axis)) return std::nullopt;
    ir::Expr bound = pool_.mul(inner->low, e->args[1]);
    return e->op == ir::ExprOp::FloorDiv ? Digits{bound, inner->high} : Digits{inner->low, bound};
  }

  bool covered(const std::vector<Digits>& seen, ir::Expr axis) const {
    ir::Expr reached = pool_.integer(1);
    for (size_t step = 0; step <= seen.size(); ++step) {
      if (!reached || reached == axis->extent()) return true;
      auto next = std::find_if(seen.begin(), seen.end(),
                               [&](const Digits& digits) { return digits.low == reached; });
      if (next == seen.end()) return false;
      reached = next->high;
    }
    return false;
  }

  static bool uses(ir::Expr body, ir::Expr part) {
    bool found = false;
    visit(body, [&](ir::Expr e) { found |= e == part; });
    return found;
  }

  enum class Role { Row, Column };

  // The role in `reduce` of an axis that the nested stages do not have: a column if only the value
  // operand of a product has it, else a further row. A computed value operand would be recomputed
  // for every row.
  Role role_of(ir::Expr reduce, ir::Expr axis) const {
    ir::Expr body = without_float_casts(reduce->body());
    if (body->op != ir::ExprOp::Mul) return Role::Row;
    const bool first = holds_stage(body->args[0]) || holds_reduction(body->args[0]);
    const int tile_side = first ? 0 : 1;
    ir::Expr tile = body->args[tile_side], value = without_float_casts(body->args[1 - tile_side]);
    if (tile->depends_on(axis) || !value->depends_on(axis)) return Role::Row;
    if (value->op != ir::ExprOp::Read) {
      throw NotACascade{"the value operand of a contraction is computed"};
    }
    return Role::Column;
  }

  static bool holds_reduction(ir::Expr e) {
    bool found = false;
    visit(e, [&](ir::Expr node) { found |= node->op == ir::ExprOp::Reduce; });
    return found;
  }

  // The body computes a contraction per streamed element.
  static bool holds_producer(ir::Expr reduce) { return holds_reduction(reduce->body()); }

  bool holds_stage(ir::Expr e) const {
    bool found = false;
    visit(e, [&](ir::Expr node) { found |= contains(stages_, node); });
    return found;
  }

  // Replaces stage reductions by Result leaves and contractions by their canonical form.
  ir::Expr over_results(ir::Expr e) {
    return pool_.rewrite(e, [&](ir::Expr node) -> ir::Expr {
      if (node->op != ir::ExprOp::Reduce) return nullptr;
      for (size_t i = 0; i < stages_.size(); ++i) {
        ir::Expr stage = stages_[i];
        if (is_ranked(stage->reduction) && is_ranked(node->reduction) &&
            node->body() == stage->body() && node->reduction == stage->reduction) {
          const auto number = 2 * static_cast<int64_t>(i) + 2 + node->integer;
          return pool_.read(-number, node->dtype, {node->args[2]});
        }
        if (node == stage) {
          return pool_.leaf(ir::LeafKind::Result, static_cast<int64_t>(i), node->dtype);
        }
      }
      auto contraction = as_contraction(pool_, node);
      RF_CHECK(contraction, "an unclassified reduction inside a stage");
      return rebuilt(pool_, *contraction, node->dtype);
    });
  }

  void add_stage(ir::Expr reduce) {
    Stage stage;
    stage.reduction = reduce->reduction;
    stage.dtype = reduce->body()->dtype;
    stage.columns = columns_[reduce];
    if (is_ranked(reduce->reduction)) {
      ir::Expr rank = reduce->args[2];
      ir::Expr k = rank->op == ir::ExprOp::Axis ? rank->extent() : nullptr;
      if (rank->is_constant()) k = pool_.integer(rank->integer + 1);
      if (!k || !k->is_constant()) throw NotACascade{"k is not a constant"};
      stage.k = k->integer;
    }
    stage.body = pool_.substitute(over_results(reduce->body()),
                                  {{reduce->bound_axis(), result_.cascade.stream}});
    if (!stage.columns.empty() && !value_is_read(stage)) {
      throw NotACascade{"the value operand of a contraction is computed"};
    }
    result_.cascade.stages.push_back(std::move(stage));
  }

  static bool value_is_read(const Stage& stage) {
    ir::Expr body = without_float_casts(stage.body);
    if (body->op != ir::ExprOp::Mul) return false;
    for (ir::Expr arg : body->args) {
      for (ir::Expr column : stage.columns) {
        if (arg->depends_on(column) && without_float_casts(arg)->op != ir::ExprOp::Read)
          return false;
      }
    }
    return true;
  }

  // Dimensions that together enumerate the streamed axis in row-major order, as functions of it;
  // empty if they do not.
  std::vector<std::pair<ir::Expr, ir::Expr>> streamed_dimensions(
      const std::vector<ir::Expr>& dims) {
    ir::Expr size = pool_.integer(1);
    std::vector<std::pair<ir::Expr, ir::Expr>> map;
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
      ir::Expr position = pool_.floordiv(result_.cascade.stream, size);
      const bool outermost = std::next(dim) == dims.rend();
      map.emplace_back(*dim, outermost ? position : pool_.floormod(position, (*dim)->extent()));
      size = pool_.mul(size, (*dim)->extent());
    }
    if (size != extent_) map.clear();
    return map;
  }

  void add_output(const LoweredOutput& lowered, const std::vector<ir::Expr>& loops) {
    CascadeOutput output;
    output.value = lowered.value;
    output.axes = lowered.axes;
    ir::Expr body = over_results(lowered.body);
    std::vector<ir::Expr> columns, ranks, rest;
    for (auto& [reduce, list] : columns_) {
      for (ir::Expr column : list) columns.push_back(column);
    }
    visit(body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer < 0 && e->args[0]->op == ir::ExprOp::Axis) {
        ranks.push_back(e->args[0]);
      }
    });
    for (ir::Expr axis : loops) {
      if (contains(rows_, axis) || contains(columns, axis) || contains(ranks, axis)) continue;
      rest.push_back(axis);
    }
    if (auto map = streamed_dimensions(rest); !map.empty()) {
      output.maps_back = true;
      body = pool_.substitute(body, map);
      for (ir::Expr& axis : output.axes) axis = pool_.substitute(axis, map);
      for (ir::Expr column : columns) {
        if (body->depends_on(column)) throw NotACascade{"an output has columns and the axis"};
      }
      if (!ranks.empty()) throw NotACascade{"an output has ranks and the axis"};
    } else if (!rest.empty()) {
      throw NotACascade{"an output has an axis that is no row, column or the streamed axis"};
    }
    result_.maps_back |= output.maps_back;
    output.body = body;
    result_.cascade.outputs.push_back(std::move(output));
  }

  struct ById {
    bool operator()(ir::Expr a, ir::Expr b) const { return a->id < b->id; }
  };

  ir::ExprPool& pool_;
  std::vector<LoweredOutput> outputs_;
  Axes axes_;
  std::vector<std::vector<ir::Expr>> loops_;  // of every output: its axes, outermost first
  Extraction result_;
  ir::ExprMap seen_;
  std::set<std::pair<ir::Expr, ir::Expr>> inner_seen_;
  std::vector<ir::Expr> stages_;
  std::map<ir::Expr, std::vector<ir::Expr>, ById> columns_;
  std::vector<ir::Expr> rows_;
  ir::Expr extent_ = nullptr;
  bool shares_rows_ = false;  // a contraction has no axis that the streamed operand lacks
};

}  // namespace

ir::Expr cascade_axis(ir::ExprPool& pool, Axes axes, const std::string& name, ir::Expr extent,
                      size_t number) {
  if (axes == Axes::Own) return pool.axis(name, extent);
  return pool.shared_axis(number == 0 ? name : fmt::format("{}{}", name, number), extent);
}

std::variant<Extraction, std::string> extract(ir::ExprPool& pool,
                                              const std::vector<LoweredOutput>& outputs,
                                              Axes axes) {
  if (outputs.empty()) return std::string("no output");
  try {
    return Extractor(pool, outputs, axes).run();
  } catch (const NotACascade& no) {
    return no.reason;
  }
}

}  // namespace redfuser::cascade
