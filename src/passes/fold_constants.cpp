#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/memory_budget.h"
#include "cpu/opaque/opaque.h"
#include "cpu/opaque/opaque_shapes.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewrite.h"
#include "redfuser/memory_limit.h"

namespace redfuser {
namespace {

constexpr int64_t kMaxResultBytes = 16 << 20;
constexpr int64_t kMaxGrowth = 4;
constexpr double kMaxTerms = 0x1p31;  // of all reductions of a node

class ConstantFolder {
 public:
  explicit ConstantFolder(Graph& graph)
      : graph_(graph),
        rewrite_(graph),
        learned_(graph.values.size()),
        tensors_(graph.values.size()) {}

  bool run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) visit_node(static_cast<NodeId>(n));
    rewrite_.apply();
    return changed_;
  }

 private:
  void visit_node(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (node.def == nullptr || node.def->random) return;
    bool stale = std::any_of(node.inputs.begin(), node.inputs.end(),
                             [&](ValueId input) { return input != kAbsent && learned_[input]; });
    if (stale) infer_again(id);
    if (!all_outputs_constant(node) && is_foldable(node)) fold(node);
    if (all_outputs_constant(node)) {
      rewrite_.remove(id);
      changed_ = true;
    }
  }

  bool all_outputs_constant(const Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return output == kAbsent || graph_.values[output].is_constant();
    });
  }

  bool is_foldable(const Node& node) const {
    auto usable = [&](ValueId input) {
      return input == kAbsent ||
             (graph_.values[input].is_constant() && graph_.values[input].dtype != DType::String);
    };
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), usable)) return false;
    for (ValueId output : node.outputs) {
      if (output == kAbsent) continue;
      const Value& value = graph_.values[output];
      if (value.indexed || value.dtype == DType::String) return false;
    }
    return node.def->lower != nullptr || find_opaque(node.domain, node.op) != nullptr;
  }

  int64_t input_bytes(const Node& node) const {
    int64_t bytes = 0;
    for (ValueId input : node.inputs) {
      if (input != kAbsent) bytes += static_cast<int64_t>(graph_.values[input].constant.bytes());
    }
    return bytes;
  }

  // The step that computes one output from its lowering.
  StepKind make_step(ValueId output, Expr body, std::vector<Expr> axes) const {
    if (body->bound_level > 0) return ReduceStep{output, std::move(axes), body};
    return MapStep{std::move(axes), {{output, body}}};
  }

  // True if the output is worth its memory and its time, and there is room for it.
  bool is_worthwhile(const Node& node, ValueId output, Expr body, RunContext& context) const {
    Dims dims = dims_of(graph_, output, context.symbols);
    int64_t count = element_count(dims);
    int64_t bytes = count * static_cast<int64_t>(size_of(graph_.values[output].dtype));
    if (bytes > kMaxResultBytes &&
        (bytes > kMaxGrowth * input_bytes(node) || body->op == ExprOp::Read)) {
      return false;
    }
    if (bytes > MemoryLimit::left()) return false;
    double terms = 0;
    visit(body, [&](Expr expr) {
      if (expr->op != ExprOp::Reduce || !expr->extent()->free_axes.empty()) return;
      terms += static_cast<double>(evaluate_size(expr->extent(), context.symbols));
    });
    return terms * static_cast<double>(count) <= kMaxTerms;
  }

  void fold_lowered(const Node& node, RunContext& context) {
    bind_runtime_shape(context, node);
    for (ValueId output : node.outputs) {
      if (output == kAbsent || graph_.values[output].is_constant()) continue;
      std::vector<Expr> axes = output_axes(graph_, output);
      Lowering lowering(graph_, [output](ValueId value) { return value == output; });
      Expr body = lowering.element(output, axes);
      if (!is_worthwhile(node, output, body, context)) continue;
      StepKind step = make_step(output, body, std::move(axes));
      if (const auto* map = std::get_if<MapStep>(&step)) {
        make_kernel(graph_, *map)->run(context);
      } else {
        make_kernel(graph_, std::get<ReduceStep>(step))->run(context);
      }
    }
  }

  void fold(const Node& node) {
    if (!pool_) pool_ = std::make_unique<ThreadPool>(0);
    RunContext context{graph_, tensors_, symbols_, *pool_};
    for (ValueId input : node.inputs) {
      if (input != kAbsent) tensors_[input] = graph_.values[input].constant;
    }
    try {
      if (node.def->lower != nullptr) {
        fold_lowered(node, context);
      } else {
        OpaqueStep step{graph_.values[present_output(node)].producer};
        make_kernel(graph_, step)->run(context);
      }
    } catch (const MemoryLimitError& error) {
      user_error("[{}] node \"{}\", evaluated ahead: {}", node.op, node.name, error.what());
    }
    for (ValueId output : node.outputs) {
      if (output != kAbsent && tensors_[output].defined()) adopt(output);
    }
    for (ValueId id : node.inputs) {
      if (id != kAbsent) tensors_[id] = Tensor();
    }
  }

  static ValueId present_output(const Node& node) {
    auto found = std::find_if(node.outputs.begin(), node.outputs.end(),
                              [](ValueId output) { return output != kAbsent; });
    RF_CHECK(found != node.outputs.end(), "node \"{}\" has no output", node.name);
    return *found;
  }

  // Makes a computed tensor the constant of its value.
  void adopt(ValueId id) {
    std::vector<Expr> before = graph_.values[id].shape;
    set_constant(graph_, id, std::move(tensors_[id]));
    tensors_[id] = Tensor();
    learn_shape(id, before);
    learned_[id] = 1;
    changed_ = true;
  }

  // Records what the new sizes of a value say about the symbols of the old ones; keeps an old size
  // from which no symbol follows.
  void learn_shape(ValueId id, const std::vector<Expr>& before) {
    std::vector<Expr>& shape = graph_.values[id].shape;
    for (size_t i = 0; i < before.size(); ++i) {
      if (shape[i] == before[i]) continue;
      if (!rewrite_.substitute(before[i], shape[i]) && !shape[i]->is_constant()) {
        shape[i] = before[i];
        continue;
      }
      learned_[id] = 1;
      changed_ = true;
    }
  }

  // Applies the shape rule again to a node whose inputs are better known than before.
  void infer_again(NodeId node) {
    int64_t watermark = graph_.pool->fresh_symbol("inferred")->integer;
    std::vector<Value> before;
    for (ValueId output : graph_.nodes[node].outputs) {
      if (output != kAbsent) before.push_back(graph_.values[output]);
    }
    infer_node(graph_, node);
    size_t at = 0;
    for (ValueId output : graph_.nodes[node].outputs) {
      if (output == kAbsent) continue;
      const Value& old = before[at++];
      Value& now = graph_.values[output];
      // A size that is still unknown keeps its symbol.
      for (size_t i = 0; i < old.shape.size(); ++i) {
        if (mentions_newer(now.shape[i], watermark)) now.shape[i] = old.shape[i];
      }
      learn_shape(output, old.shape);
      if (now.is_constant() != old.is_constant() || now.has_elements != old.has_elements ||
          now.elements != old.elements) {
        learned_[output] = 1;
      }
    }
  }

  static bool mentions_newer(Expr size, int64_t watermark) {
    bool found = false;
    visit(size,
          [&](Expr node) { found |= node->op == ExprOp::Symbol && node->integer > watermark; });
    return found;
  }

  Graph& graph_;
  Rewrite rewrite_;
  std::vector<char> learned_;     // by value: contents or sizes became known in this run
  std::vector<Tensor> tensors_;   // by value: inputs and outputs of the node at hand
  std::vector<int64_t> symbols_;  // sizes bound while folding
  std::unique_ptr<ThreadPool> pool_;
  bool changed_ = false;
};

}  // namespace

bool fold_constants(Graph& graph) { return ConstantFolder(graph).run(); }

}  // namespace redfuser
