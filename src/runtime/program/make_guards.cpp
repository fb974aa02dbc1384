// Which positions a run looks at, and when.
#include <algorithm>
#include <unordered_set>

#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

class GuardMaker {
 public:
  explicit GuardMaker(CompiledProgram& program) : program_(program), graph_(program.graph()) {
    for (const ValueId id : graph_.inputs) {
      for (const Expr size : graph_.values[static_cast<size_t>(id)].shape) note_symbols(size);
    }
  }

  void run() {
    for (const Step& step : program_.plan.steps) {
      program_.guards.emplace_back();
      for (const NodeId node : step.nodes) {
        if (!guarded_.insert(node).second) continue;
        if (!std::holds_alternative<OpaqueStep>(step.kind)) add_guards(step, node);
        add_input_guards(node);
      }
    }
  }

 private:
  void note_symbols(Expr size) {
    visit(size, [&](Expr e) {
      if (e->op == ExprOp::Symbol) input_symbols_.insert(e);
    });
  }

  bool is_given(ValueId id) const {
    const Value& value = graph_.values[static_cast<size_t>(id)];
    return value.is_constant() || value.producer < 0;
  }

  // What a step reads at follows from what it reads.
  void add_guards(const Step& step, NodeId node) {
    const std::unordered_set<ValueId> reads(step.reads.begin(), step.reads.end());
    for (auto& guard :
         position_guards(graph_, node, [&](ValueId id) { return !reads.count(id); })) {
      const bool ready = std::all_of(guard.reads().begin(), guard.reads().end(), [&](ValueId id) {
        return reads.count(id) > 0 || is_given(id);
      });
      if (ready) program_.guards.back().push_back(std::move(guard));
    }
  }

  // Of arithmetic on integers alone: not what a network computes from the inputs.
  void add_input_guards(NodeId node) {
    for (auto& guard : position_guards(graph_, node, index_arithmetic(graph_))) {
      const auto& needed = guard.reads();
      bool ready =
          !needed.empty() && !guard.reduces() &&
          std::all_of(needed.begin(), needed.end(), [&](ValueId id) { return is_given(id); });
      for (const Expr size : guard.sizes()) {
        visit(size, [&](Expr e) {
          ready = ready && (e->op != ExprOp::Symbol || input_symbols_.count(e) > 0);
        });
      }
      if (ready) program_.input_guards.push_back(std::move(guard));
    }
  }

  CompiledProgram& program_;
  const Graph& graph_;
  std::unordered_set<Expr> input_symbols_;
  std::unordered_set<NodeId> guarded_;
};

}  // namespace

void make_guards(CompiledProgram& program) { GuardMaker(program).run(); }

}  // namespace redfuser
