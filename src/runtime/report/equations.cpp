#include "runtime/report/equations.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace redfuser::runtime {
namespace {

std::string dims_text(const ir::Graph& graph, const ir::Value& value) {
  std::vector<std::string> dims;
  for (const ir::Expr dim : value.shape) dims.push_back(to_string(*graph.pool, dim));
  return fmt::format("{} {}[{}]", value.name, name_of(value.dtype), fmt::join(dims, ","));
}

class EquationWriter {
 public:
  EquationWriter(const ir::Graph& graph, const cascade::Streaming& streaming)
      : graph_(graph), streaming_(streaming), cascade_(streaming.cascade) {}

  Json write() {
    find_shared();
    Json stages = Json::array(), references = Json::array(), accumulators = Json::array();
    for (const cascade::Stage& stage : cascade_.stages) {
      stages.push_back({{"columns", axes(stage.columns)},
                        {"reduce", name_of(stage.reduction)},
                        {"text", text(stage.body)}});
      if (stage.k != 1) stages.back()["k"] = stage.k;
    }
    for (const cascade::Reference& reference : streaming_.references) {
      references.push_back({{"text", text(reference.value)}, {"after", reference.ready_after}});
    }
    for (const cascade::Accumulator& a : streaming_.accumulators) {
      accumulators.push_back({{"columns", axes(a.columns)},
                              {"form", name_of(a.form)},
                              {"reduce", name_of(a.reduction)},
                              {"lift", text(a.lift)},
                              {"moved", a.transport != nullptr ? text(a.transport) : ""}});
    }
    Json finish = Json::array(), outputs = Json::array();
    for (const ir::Expr each : streaming_.finish) finish.push_back(text(each));
    for (const cascade::CascadeOutput& output : cascade_.outputs) {
      outputs.push_back({{"value", dims_text(graph_, value(output.value))},
                         {"axes", axes(output.axes)},
                         {"text", text(output.body)}});
    }
    Json where = Json::array();
    for (size_t i = 0; i < shared_.size(); ++i) {
      where.push_back({{"name", name_of_shared(i)}, {"text", text(shared_[i], shared_[i])}});
    }
    return {{"stream", axes({cascade_.stream})[0]},
            {"rows", axes(cascade_.rows)},
            {"values", values_},
            {"where", std::move(where)},
            {"stages", std::move(stages)},
            {"references", std::move(references)},
            {"accumulators", std::move(accumulators)},
            {"finish", std::move(finish)},
            {"outputs", std::move(outputs)}};
  }

 private:
  const ir::Value& value(ir::ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  std::string name_of_shared(size_t i) const {
    constexpr const char* kNames[] = {"s", "t", "u", "v", "w"};
    const std::string name =
        i < std::size(kNames) ? kNames[i] : fmt::format("s{}", i - std::size(kNames) + 1);
    return fmt::format("{}[{}]", name, graph_.pool->axis_name(cascade_.stream));
  }

  std::vector<std::string> axes(const std::vector<ir::Expr>& list) const {
    std::vector<std::string> texts;
    for (const ir::Expr axis : list) {
      texts.push_back(axis->op == ir::ExprOp::Axis
                          ? fmt::format("{}<{}", graph_.pool->axis_name(axis),
                                        to_string(*graph_.pool, axis->extent()))
                          : to_string(*graph_.pool, axis));
    }
    return texts;
  }

  // Elements of the stream that several stages compute from memory alone, the largest such parts.
  void find_shared() {
    std::unordered_map<ir::Expr, int> counts;
    for (const cascade::Stage& stage : cascade_.stages) {
      ir::visit(stage.body, [&](ir::Expr e) { ++counts[e]; });
    }
    std::unordered_set<ir::Expr> taken;
    for (const cascade::Stage& stage : cascade_.stages) {
      const auto& free = stage.body->free_axes;
      graph_.pool->rewrite(stage.body, [&](ir::Expr e) -> ir::Expr {
        const bool named = e != stage.body || counts[e] > 1;
        const bool simple = e->args.empty() || e->op == ir::ExprOp::Read;
        const bool here =
            std::includes(free.begin(), free.end(), e->free_axes.begin(), e->free_axes.end());
        if (!named || simple || !here || counts[e] < 2 || e->has_leaf || !e->has_read ||
            !e->depends_on(cascade_.stream)) {
          return nullptr;
        }
        if (taken.insert(e).second) shared_.push_back(e);
        return e;
      });
    }
    for (size_t i = 0; i < shared_.size(); ++i) {
      replaced_[shared_[i]] = graph_.pool->read(static_cast<int64_t>(graph_.values.size() + i),
                                                shared_[i]->dtype, {cascade_.stream});
    }
  }

  // With names for shared parts, `except` the one that is to be spelled out.
  std::string text(ir::Expr expr, ir::Expr except = nullptr) {
    const ir::Expr named = graph_.pool->rewrite(expr, [&](ir::Expr e) -> ir::Expr {
      const auto found = e == except ? replaced_.end() : replaced_.find(e);
      return found == replaced_.end() ? nullptr : found->second;
    });
    ir::visit(named, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer < 0) return;
      const auto id = static_cast<size_t>(e->integer);
      const std::string number = fmt::format("%{}", e->integer);
      if (id < graph_.values.size()) {
        values_[number] = dims_text(graph_, graph_.values[id]);
      } else {
        values_[number] = name_of_shared(id - graph_.values.size());
      }
    });
    return to_string(*graph_.pool, named);
  }

  const ir::Graph& graph_;
  const cascade::Streaming& streaming_;
  const cascade::Cascade& cascade_;
  std::vector<ir::Expr> shared_;
  std::unordered_map<ir::Expr, ir::Expr> replaced_;
  Json values_ = Json::object();
};

}  // namespace

Json equations(const ir::Graph& graph, const cascade::Streaming& streaming) {
  return EquationWriter(graph, streaming).write();
}

}  // namespace redfuser::runtime
