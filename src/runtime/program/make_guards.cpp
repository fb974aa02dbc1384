#include "runtime/program/make_guards.h"

#include <algorithm>
#include <unordered_set>

namespace redfuser::runtime {
namespace {

class GuardMaker {
 public:
  explicit GuardMaker(CompiledProgram& program) : program_(program), graph_(program.graph()) {
    for (const ir::ValueId id : graph_.inputs) {
      for (const ir::Expr size : graph_.values[static_cast<size_t>(id)].shape) note_symbols(size);
    }
  }

  void run() {
    for (const fuse::Step& step : program_.plan.steps) {
      program_.guards.emplace_back();
      for (const ir::NodeId node : step.nodes) {
        if (!guarded_.insert(node).second) continue;
        const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
        if (opaque == nullptr || opaque->node != node) add_guards(step, node);
        add_input_guards(node);
      }
    }
  }

 private:
  void note_symbols(ir::Expr size) {
    visit(size, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Symbol) input_symbols_.insert(e);
    });
  }

  bool is_given(ir::ValueId id) const {
    const ir::Value& value = graph_.values[static_cast<size_t>(id)];
    return value.is_constant() || value.producer < 0;
  }

  // Guards whose positions depend on values that the step reads.
  void add_guards(const fuse::Step& step, ir::NodeId node) {
    const std::unordered_set<ir::ValueId> reads(step.reads.begin(), step.reads.end());
    for (auto& guard :
         cpu::position_guards(graph_, node, [&](ir::ValueId id) { return !reads.count(id); })) {
      const bool ready =
          std::all_of(guard.reads().begin(), guard.reads().end(),
                      [&](ir::ValueId id) { return reads.count(id) > 0 || is_given(id); });
      if (ready) program_.guards.back().push_back(std::move(guard));
    }
  }

  // Guards of integer arithmetic on inputs, not of positions that the network computes.
  void add_input_guards(ir::NodeId node) {
    for (auto& guard : cpu::position_guards(graph_, node, cpu::index_arithmetic(graph_))) {
      const auto& needed = guard.reads();
      bool ready =
          !needed.empty() && !guard.reduces() &&
          std::all_of(needed.begin(), needed.end(), [&](ir::ValueId id) { return is_given(id); });
      for (const ir::Expr size : guard.sizes()) {
        visit(size, [&](ir::Expr e) {
          ready = ready && (e->op != ir::ExprOp::Symbol || input_symbols_.count(e) > 0);
        });
      }
      if (ready) program_.input_guards.push_back(std::move(guard));
    }
  }

  CompiledProgram& program_;
  const ir::Graph& graph_;
  std::unordered_set<ir::Expr> input_symbols_;
  std::unordered_set<ir::NodeId> guarded_;
};

}  // namespace

void make_guards(CompiledProgram& program) { GuardMaker(program).run(); }

}  // namespace redfuser::runtime
