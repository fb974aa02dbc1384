// Constants that are functions of their indices become expressions.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ops/graph_editor.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "passes/index_functions.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

// Elements; loading smaller masks is cheap, and so is loading the fewest positions.
constexpr int64_t kLarge = 4096, kFew = 8;

class IndexExpressionFinder {
 public:
  explicit IndexExpressionFinder(ir::Graph& graph) : graph_(graph), editor_(graph) {}

  bool run() {
    const auto consumers = graph_.consumers();
    const size_t values = graph_.values.size();
    for (size_t v = 0; v < values; ++v) {
      const Tensor tensor = graph_.values[v].constant;
      if (!tensor.defined() || tensor.size() <= kFew || size_of(tensor.dtype()) == 0) {
        continue;
      }
      const auto id = static_cast<ir::ValueId>(v);
      const auto progression = find_progression(tensor);
      if (!progression && tensor.size() < kLarge) continue;
      const bool output = std::count(graph_.outputs.begin(), graph_.outputs.end(), id) > 0;
      if (output || !meant(consumers[v])) continue;
      name_ = graph_.values[v].name;
      if (progression) {
        replaced_.emplace_back(id, expression(tensor, *progression));
      } else if (const auto band = find_band(tensor)) {
        replaced_.emplace_back(id, expression(tensor, *band));
      }
    }
    if (replaced_.empty()) return false;
    editor_.place();
    Rewrite rewrite(graph_);
    for (const auto& [from, to] : replaced_) rewrite.replace(from, to);
    rewrite.apply();
    infer_readers();
    eliminate_dead(graph_);
    return true;
  }

 private:
  // Every reader is elementwise or a view, into which an expression can be inlined.
  bool meant(const std::vector<ir::NodeId>& readers) const {
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](ir::NodeId reader) {
      const ir::Node& node = graph_.nodes[static_cast<size_t>(reader)];
      if (node.def == nullptr || node.def->lower == nullptr) return false;
      return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId output) {
        if (output == ir::kAbsent) return true;
        ops::Lowering lowering(graph_, [output](ir::ValueId v) { return v == output; });
        return lowering.element(output, ops::output_axes(graph_, output))->bound_level == 0;
      });
    });
  }

  ir::ValueId constant(Tensor tensor) {
    return ops::add_constant(graph_, unique(), std::move(tensor));
  }

  ir::ValueId integers(const std::vector<int64_t>& list, Dims dims) {
    Tensor tensor(DType::Int64, std::move(dims));
    std::copy(list.begin(), list.end(), tensor.as<int64_t>());
    return constant(std::move(tensor));
  }

  static Tensor element(const Tensor& tensor, int64_t position) {
    Tensor one(tensor.dtype(), {1});
    const size_t width = size_of(tensor.dtype());
    std::memcpy(one.mutable_data(),
                static_cast<const char*>(tensor.data()) + static_cast<size_t>(position) * width,
                width);
    return one;
  }

  std::string unique() { return fmt::format("{}/index_{}", name_, graph_.values.size()); }

  // The new nodes read constants only, so they are placed first.
  ir::ValueId node(const std::string& op, std::vector<ir::ValueId> inputs,
                   ir::Attributes attributes = {}) {
    ir::Node node = ops::new_node(op, std::move(inputs), std::move(attributes));
    node.name = name_;
    ++added_;
    const ir::ValueId made = editor_.add(0, std::move(node), unique());
    forget_elements(made);
    return made;
  }

  // Inference knows the elements of a small tensor; here their function of the index counts.
  void forget_elements(ir::ValueId id) {
    ir::Value& value = graph_.values[static_cast<size_t>(id)];
    if (!value.is_constant() && !value.has_elements) return;
    value.constant = Tensor();
    value.elements.clear();
    value.has_elements = false;
    ops::infer_indexed(graph_, value.producer);
  }

  // first, first + step, ... along one dimension of several.
  ir::ValueId indices(const Dims& dims, size_t dim, int64_t first = 0, int64_t step = 1) {
    std::vector<int64_t> shape(dims.size(), 1);
    shape[dim] = dims[dim];
    const int64_t end = first + step * dims[dim];
    const ir::ValueId range =
        node("Range", {integers({first}, {}), integers({end}, {}), integers({step}, {})});
    return node("Reshape", {range, list(shape)});
  }

  ir::ValueId list(const std::vector<int64_t>& sizes) {
    return integers(sizes, {static_cast<int64_t>(sizes.size())});
  }

  ir::ValueId expression(const Tensor& tensor, const Progression& progression) {
    ir::ValueId value =
        indices(tensor.dims(), progression.dim, progression.first, progression.step);
    if (tensor.dtype() != DType::Int64) {
      value = node("Cast", {value}, {{"to", static_cast<int64_t>(tensor.dtype())}});
    }
    return node("Expand", {value, list(tensor.dims())});
  }

  ir::ValueId expression(const Tensor& tensor, const Band& band) {
    const Dims& dims = tensor.dims();
    const ir::ValueId shape = list(dims);
    if (band.outside < 0) {
      return node("ConstantOfShape", {shape}, {{"value", element(tensor, band.inside)}});
    }
    const ir::ValueId distance = node("Sub", {indices(dims, band.column), indices(dims, band.row)});
    ir::ValueId near = ir::kAbsent;
    if (band.lowest > 1 - dims[band.row]) {
      near = node("LessOrEqual", {integers({band.lowest}, {1}), distance});
    }
    if (band.highest < dims[band.column] - 1) {
      const ir::ValueId below = node("LessOrEqual", {distance, integers({band.highest}, {1})});
      near = near == ir::kAbsent ? below : node("And", {near, below});
    }
    const ir::ValueId chosen = node("Where", {near, constant(element(tensor, band.inside)),
                                              constant(element(tensor, band.outside))});
    return node("Expand", {chosen, shape});
  }

  // A function of index functions alone is an index function.
  void infer_readers() {
    for (size_t n = added_; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      const bool reads =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId input) {
            return input != ir::kAbsent && graph_.values[static_cast<size_t>(input)].indexed;
          });
      if (reads && node.def != nullptr) ops::infer_indexed(graph_, static_cast<ir::NodeId>(n));
    }
  }

  ir::Graph& graph_;
  ops::GraphEditor editor_;
  std::string name_;  // of the current constant
  std::vector<std::pair<ir::ValueId, ir::ValueId>> replaced_;
  size_t added_ = 0;
};

}  // namespace

bool recover_index_expressions(ir::Graph& graph) { return IndexExpressionFinder(graph).run(); }

}  // namespace redfuser::passes
