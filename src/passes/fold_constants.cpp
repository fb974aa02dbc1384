#include <algorithm>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/memory_budget.h"
#include "cascade/visibility/running.h"
#include "cpu/opaque/opaque.h"
#include "cpu/opaque/opaque_shapes.h"
#include "cpu/select/make_kernel.h"
#include "ir/evaluate.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/registry.h"
#include "ops/reindex.h"
#include "ops/sizes.h"
#include "passes/code_products.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"
#include "passes/weights/code_finder.h"
#include "redfuser/memory_limit.h"

namespace redfuser::passes {
namespace {

constexpr int64_t kMaxResultBytes = 16 << 20;
constexpr int64_t kMaxGrowth = 4;
constexpr double kMaxTerms = 0x1p31;  // of all reductions of a node

class ConstantFolder {
 public:
  explicit ConstantFolder(ir::Graph& graph)
      : graph_(graph),
        rewrite_(graph),
        codes_(graph),
        learned_(graph.values.size()),
        folded_(graph.nodes.size()),
        readers_(graph.values.size()),
        tensors_(graph.values.size()) {
    for (const ir::Node& node : graph.nodes) count_readers(node, 1);
    for (const ir::ValueId output : graph.outputs) ++readers_[output];
  }

  bool run() {
    if (has_codes(graph_)) find_unpacked();
    for (size_t n = 0; n < graph_.nodes.size(); ++n) visit_node(static_cast<ir::NodeId>(n));
    if (pool_) find_codes();
    rewrite_.apply();
    return changed_;
  }

 private:
  // Nodes that make floats of 8-bit ones for products which multiply these as they are.
  void find_unpacked() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const auto product = code_product(graph_, static_cast<ir::NodeId>(n));
      if (product) unpacked_.insert(product->passed.begin(), product->passed.end());
    }
  }

  // Of the constants that the remaining nodes multiply.
  void find_codes() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (node.def == nullptr || folded_[n]) continue;
      for (const ir::ValueId input : node.inputs) {
        if (input == ir::kAbsent || graph_.values[input].codes || !codes_.knows(input)) continue;
        if (!sums_or_reorders(node)) continue;
        auto codes = codes_.find(input, *pool_);
        if (codes) graph_.values[input].codes = std::move(codes);
      }
    }
  }

  // Whether the node may be a product, or turns a matrix for one.
  bool sums_or_reorders(const ir::Node& node) const {
    if (node.def->lower == nullptr) return ops::has_channel_weights(node);
    const ir::ValueId output = present_output(node);
    ops::Lowering lowering(graph_, [output](ir::ValueId value) { return value == output; });
    ir::Expr body = lowering.element(output, ops::output_axes(graph_, output));
    const bool reorders = body->op == ir::ExprOp::Read &&
                          std::none_of(body->args.begin(), body->args.end(),
                                       [](ir::Expr index) { return index->has_read; });
    return reorders || body->bound_level > 0;
  }

  void visit_node(ir::NodeId id) {
    const ir::Node& node = graph_.nodes[id];
    if (node.def == nullptr || node.def->random || unpacked_.count(id) > 0) return;
    bool stale = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId input) {
      return input != ir::kAbsent && learned_[input];
    });
    if (stale) infer_again(id);
    if (!all_outputs_constant(node) && is_foldable(node)) fold(node);
    if (all_outputs_constant(node)) {
      rewrite_.remove(id);
      folded_[id] = 1;
      count_readers(node, -1);
      free_inputs(node);
      changed_ = true;
    }
  }

  void count_readers(const ir::Node& node, int change) {
    for (const ir::ValueId input : node.inputs) {
      if (input != ir::kAbsent) readers_[input] += change;
    }
  }

  // Frees constants that this pass made and that nothing reads any more.
  void free_inputs(const ir::Node& node) {
    for (const ir::ValueId input : node.inputs) {
      if (input == ir::kAbsent || readers_[input] > 0 || codes_.reads(input)) continue;
      const ir::NodeId producer = graph_.values[input].producer;
      if (producer >= 0 && folded_[producer]) graph_.values[input].constant = Tensor();
    }
  }

  bool all_outputs_constant(const ir::Node& node) const {
    return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId output) {
      return output == ir::kAbsent || graph_.values[output].is_constant();
    });
  }

  bool is_foldable(const ir::Node& node) const {
    auto usable = [&](ir::ValueId input) {
      if (input == ir::kAbsent) return true;
      const ir::Value& value = graph_.values[input];
      return value.dtype != DType::String &&
             (value.is_constant() || (value.indexed && node.def->lower != nullptr));
    };
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), usable)) return false;
    if (!has_constants_alone(node) && !reduces_constants(node)) return false;
    for (ir::ValueId output : node.outputs) {
      if (output == ir::kAbsent) continue;
      const ir::Value& value = graph_.values[output];
      if (value.indexed || value.dtype == DType::String || is_list(value.dtype)) return false;
    }
    return node.def->lower != nullptr || cpu::has_opaque_kernel(node);
  }

  int64_t input_bytes(const ir::Node& node) const {
    int64_t bytes = 0;
    for (ir::ValueId input : node.inputs) {
      if (input != ir::kAbsent)
        bytes += static_cast<int64_t>(graph_.values[input].constant.bytes());
    }
    return bytes;
  }

  // The step that computes one output from its lowering.
  fuse::StepKind make_step(ir::ValueId output, ir::Expr body, std::vector<ir::Expr> axes) const {
    if (body->bound_level > 0) return fuse::ReduceStep{output, std::move(axes), body};
    return fuse::MapStep{std::move(axes), {{output, body}}};
  }

  bool has_constants_alone(const ir::Node& node) const {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId input) {
      return input == ir::kAbsent || graph_.values[input].is_constant();
    });
  }

  // Whether functions of indices and constants are reduced to fewer elements than the constants
  // have: a matrix times zeros. Elementwise they stay, as masks.
  bool reduces_constants(const ir::Node& node) const {
    if (node.outputs.size() != 1 || input_bytes(node) == 0) return false;
    const ir::ValueId output = node.outputs[0];
    const ir::Value& value = graph_.values[output];
    ir::Expr count = ops::product_of(*graph_.pool, value.shape);
    if (!count->is_constant() || value.indexed) return false;
    if (count->integer * static_cast<int64_t>(size_of(value.dtype)) > input_bytes(node)) {
      return false;
    }
    ops::Lowering lowering(graph_, [output](ir::ValueId v) { return v == output; });
    ir::Expr body = lowering.element(output, ops::output_axes(graph_, output));
    bool known = body->bound_level > 0;
    visit(body, [&](ir::Expr e) { known &= e->op != ir::ExprOp::Symbol; });
    return known;
  }

  // True if folding the output pays for its memory and time, and the memory limit allows it.
  bool is_worthwhile(const ir::Node& node, ir::ValueId output, ir::Expr body,
                     cpu::RunContext& context) const {
    Dims dims = cpu::dims_of(graph_, output, context.symbols);
    int64_t count = element_count(dims);
    int64_t bytes = count * static_cast<int64_t>(size_of(graph_.values[output].dtype));
    if (bytes > kMaxResultBytes &&
        (bytes > kMaxGrowth * input_bytes(node) || body->op == ir::ExprOp::Read)) {
      return false;
    }
    if (bytes > MemoryLimit::left()) return false;
    double terms = 0;
    visit(body, [&](ir::Expr expr) {
      if (expr->op != ir::ExprOp::Reduce || !expr->extent()->free_axes.empty()) return;
      if (cascade::running_reduction(*graph_.pool, expr)) return;
      terms += static_cast<double>(evaluate_size(expr->extent(), context.symbols));
    });
    return terms * static_cast<double>(count) <= kMaxTerms;
  }

  // The value that has the elements of `output` in the same order; null if there is none.
  const ir::Value* same_elements(ir::ValueId output, const std::vector<ir::Expr>& axes,
                                 ir::Expr body) const {
    if (body->op != ir::ExprOp::Read) return nullptr;
    const ir::Value &value = graph_.values[output], &source = graph_.values[body->integer];
    const bool same = source.dtype == value.dtype &&
                      ops::same_order(*graph_.pool, source.shape, body->args, value.shape, axes);
    return same ? &source : nullptr;
  }

  void fold_lowered(const ir::Node& node, cpu::RunContext& context) {
    bind_runtime_shape(context, node);
    for (ir::ValueId output : node.outputs) {
      if (output == ir::kAbsent || graph_.values[output].is_constant()) continue;
      std::vector<ir::Expr> axes = ops::output_axes(graph_, output);
      ops::Lowering lowering(graph_, [output](ir::ValueId value) { return value == output; });
      ir::Expr body = lowering.element(output, axes);
      const ir::Value* same = same_elements(output, axes, body);
      if (same == nullptr && !is_worthwhile(node, output, body, context)) continue;
      codes_.note(output, axes, body);
      if (same != nullptr) {
        tensors_[output] = same->constant.reshaped(cpu::dims_of(graph_, output, context.symbols));
        continue;
      }
      fuse::StepKind step = make_step(output, body, std::move(axes));
      if (const auto* map = std::get_if<fuse::MapStep>(&step)) {
        cpu::make_kernel(graph_, *map)->run(context);
      } else {
        cpu::make_kernel(graph_, std::get<fuse::ReduceStep>(step))->run(context);
      }
    }
  }

  void fold(const ir::Node& node) {
    if (!pool_) pool_ = std::make_unique<ThreadPool>(0);
    cpu::RunContext context{graph_, tensors_, symbols_, *pool_};
    for (ir::ValueId input : node.inputs) {
      if (input != ir::kAbsent) tensors_[input] = graph_.values[input].constant;
    }
    try {
      if (node.def->lower != nullptr) {
        fold_lowered(node, context);
      } else {
        fuse::OpaqueStep step{graph_.values[present_output(node)].producer};
        cpu::make_kernel(graph_, step)->run(context);
      }
    } catch (const MemoryLimitError& error) {
      user_error("[{}] node \"{}\", evaluated ahead: {}", node.op, node.name, error.what());
    }
    for (ir::ValueId output : node.outputs) {
      if (output != ir::kAbsent && tensors_[output].defined()) adopt(output);
    }
    for (ir::ValueId id : node.inputs) {
      if (id != ir::kAbsent) tensors_[id] = Tensor();
    }
  }

  static ir::ValueId present_output(const ir::Node& node) {
    auto found = std::find_if(node.outputs.begin(), node.outputs.end(),
                              [](ir::ValueId output) { return output != ir::kAbsent; });
    RF_CHECK(found != node.outputs.end(), "node \"{}\" has no output", node.name);
    return *found;
  }

  // Makes a computed tensor its value's constant.
  void adopt(ir::ValueId id) {
    std::vector<ir::Expr> before = graph_.values[id].shape;
    ops::set_constant(graph_, id, std::move(tensors_[id]));
    tensors_[id] = Tensor();
    learn_shape(id, before);
    learned_[id] = 1;
    changed_ = true;
  }

  // Substitutes symbols of a value's old sizes by its new sizes; an old size that does not
  // determine a symbol stays.
  void learn_shape(ir::ValueId id, const std::vector<ir::Expr>& before) {
    std::vector<ir::Expr>& shape = graph_.values[id].shape;
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

  // Repeats inference for a node whose inputs have become known.
  void infer_again(ir::NodeId node) {
    int64_t watermark = graph_.pool->fresh_symbol("inferred")->integer;
    std::vector<ir::Value> before;
    for (ir::ValueId output : graph_.nodes[node].outputs) {
      if (output != ir::kAbsent) before.push_back(graph_.values[output]);
    }
    ops::infer_node(graph_, node);
    size_t at = 0;
    for (ir::ValueId output : graph_.nodes[node].outputs) {
      if (output == ir::kAbsent) continue;
      const ir::Value& old = before[at++];
      ir::Value& now = graph_.values[output];
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

  static bool mentions_newer(ir::Expr size, int64_t watermark) {
    bool found = false;
    visit(size, [&](ir::Expr node) {
      found |= node->op == ir::ExprOp::Symbol && node->integer > watermark;
    });
    return found;
  }

  ir::Graph& graph_;
  Rewrite rewrite_;
  CodeFinder codes_;
  std::set<ir::NodeId> unpacked_;  // that stay
  std::vector<char> learned_;      // by value: contents or sizes became known in this run
  std::vector<char> folded_;       // by node
  std::vector<int> readers_;       // by value: nodes that are not folded, and outputs of the graph
  std::vector<Tensor> tensors_;    // by value: inputs and outputs of the current node
  std::vector<int64_t> symbols_;   // sizes bound while folding
  std::unique_ptr<ThreadPool> pool_;
  bool changed_ = false;
};

}  // namespace

bool fold_constants(ir::Graph& graph) { return ConstantFolder(graph).run(); }

}  // namespace redfuser::passes
