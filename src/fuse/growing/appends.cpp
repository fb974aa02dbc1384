#include "fuse/growing/appends.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/evaluate.h"

namespace redfuser::fuse {
namespace {

bool contains(const std::vector<ir::ValueId>& values, ir::ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

bool shares_symbols(ir::Expr a, ir::Expr b) {
  std::set<ir::Expr> symbols;
  visit(a, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Symbol) symbols.insert(e);
  });
  bool shared = false;
  visit(b, [&](ir::Expr e) { shared |= symbols.count(e) > 0; });
  return shared;
}

class Continuations {
 public:
  explicit Continuations(const Plan& plan) : plan_(plan), graph_(*plan.graph) {}

  std::vector<Continuation> find() {
    for (const Step& step : plan_.steps) {
      const auto* map = std::get_if<MapStep>(&step.kind);
      if (map == nullptr || map->outputs.size() != 1) continue;
      if (!contains(graph_.outputs, map->outputs.front().value)) continue;
      for (const ir::ValueId read : step.reads) {
        if (contains(graph_.inputs, read)) look_at(*map, read);
      }
    }
    return std::move(found_);
  }

 private:
  const std::vector<ir::Expr>& shape(ir::ValueId value) const {
    return graph_.values[static_cast<size_t>(value)].shape;
  }

  void look_at(const MapStep& map, ir::ValueId past) {
    const ir::ValueId present = map.outputs.front().value;
    const auto axis = growing_axis(past, present);
    if (!axis || map.axes[*axis]->op != ir::ExprOp::Axis || !continues(map, past, *axis)) return;
    found_.push_back({past, present, *axis});
  }

  // The only axis along which the sizes differ, by a number that does not grow with them.
  std::optional<size_t> growing_axis(ir::ValueId past, ir::ValueId present) const {
    const auto &before = shape(past), &after = shape(present);
    if (before.size() != after.size()) return std::nullopt;
    std::optional<size_t> found;
    for (size_t i = 0; i < before.size(); ++i) {
      if (before[i] == after[i]) continue;
      if (found || before[i]->is_constant()) return std::nullopt;
      if (shares_symbols(graph_.pool->sub(after[i], before[i]), before[i])) return std::nullopt;
      found = i;
    }
    return found;
  }

  // present[.., p, ..] = past[.., p, ..] for every p below the size of the past.
  bool continues(const MapStep& map, ir::ValueId past, size_t axis) const {
    std::vector<ir::Expr> at = map.axes;
    at[axis] = graph_.pool->axis("p", shape(past)[axis]);
    const ir::Expr read =
        graph_.pool->substitute(map.outputs.front().body, {{map.axes[axis], at[axis]}});
    return read->op == ir::ExprOp::Read && read->integer == past && read->args == at;
  }

  const Plan& plan_;
  const ir::Graph& graph_;
  std::vector<Continuation> found_;
};

// Whether the step reads neither the past nor, but by indices, the present.
bool leaves_alone(const Step& step, ir::ValueId past, ir::ValueId present) {
  if (contains(step.reads, past)) return false;
  const bool by_index = !std::holds_alternative<OpaqueStep>(step.kind) &&
                        !std::holds_alternative<AliasStep>(step.kind);
  return by_index || !contains(step.reads, present);
}

}  // namespace

std::vector<Continuation> find_continuations(const Plan& plan) {
  return Continuations(plan).find();
}

std::vector<Append> find_appends(const Plan& plan) {
  std::vector<Append> appends;
  std::map<std::pair<ir::Expr, ir::Expr>, std::pair<ir::Expr, ir::Expr>> symbols;
  const ir::Graph& graph = *plan.graph;
  for (const auto& [past, present, axis] : find_continuations(plan)) {
    const bool alone = std::all_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
      return contains(step.writes, present) || leaves_alone(step, past, present);
    });
    if (!alone) continue;
    const auto size = [&](ir::ValueId id) {
      return graph.values[static_cast<size_t>(id)].shape[axis];
    };
    const auto [made, added] = symbols.try_emplace({size(past), size(present)});
    if (added) {
      made->second = {graph.pool->fresh_symbol("begin"), graph.pool->fresh_symbol("room")};
    }
    appends.push_back({past, present, axis, made->second.first, made->second.second});
  }
  return appends;
}

void bind_dense(const Append& append, const ir::Graph& graph, std::vector<int64_t>& symbols) {
  const ir::Expr size = graph.values[static_cast<size_t>(append.present)].shape[append.axis];
  bool known = true;
  visit(size, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Symbol) known &= symbols[static_cast<size_t>(e->integer)] >= 0;
  });
  if (!known) return;
  symbols[static_cast<size_t>(append.begin->integer)] = 0;
  symbols[static_cast<size_t>(append.room->integer)] = ir::evaluate_size(size, symbols);
}

}  // namespace redfuser::fuse
