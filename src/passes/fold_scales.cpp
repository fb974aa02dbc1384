// (Σ w·x + b)·s + t, with constants s and t for each channel, is Σ (w·s)·x + (b·s + t): scales and
// shifts behind an operator that is linear in weights of its output channels go into the weights,
// as those of a normalisation by constant statistics do.
#include <cmath>
#include <optional>

#include "ir/channel_affine.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/registry.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

using Affine = ir::ChannelAffine;

class ScaleFolder {
 public:
  explicit ScaleFolder(ir::Graph& graph) : graph_(graph), consumers_(graph.consumers()) {
    is_output_.resize(graph.values.size());
    for (const ir::ValueId output : graph.outputs) is_output_[static_cast<size_t>(output)] = 1;
    dead_.resize(graph.nodes.size());
  }

  bool run() {
    bool changed = false;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) changed |= fold(static_cast<ir::NodeId>(n));
    if (!changed) return false;
    erase_nodes(graph_, dead_);
    eliminate_dead(graph_);
    return true;
  }

 private:
  ir::Value& value_of(ir::ValueId id) { return graph_.values[static_cast<size_t>(id)]; }
  ir::Node& node_of(ir::NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }

  // The readers that scale and shift the node's output, one after the other.
  bool fold(ir::NodeId id) {
    if (dead_[static_cast<size_t>(id)] || !ops::has_channel_weights(node_of(id))) return false;
    const std::vector<ir::ValueId> inputs = node_of(id).inputs;
    ir::ValueId value = node_of(id).outputs[0];
    const DType dtype = value_of(value).dtype;
    const bool biased = inputs.size() > 2 && inputs[2] != ir::kAbsent;
    if (dtype != DType::Float32 && dtype != DType::Float64) return false;
    if (!value_of(inputs[1]).is_constant()) return false;
    if (biased && !value_of(inputs[2]).is_constant()) return false;
    channels_ = value_of(inputs[1]).constant.dims()[0];
    Affine total{all(1), all(0), false};
    std::string name = node_of(id).name;
    std::vector<ir::NodeId> folded;
    while (const auto next = scaled_by_reader(value)) {
      folded.push_back(consumers_[static_cast<size_t>(value)][0]);
      for (size_t c = 0; c < total.scale.size(); ++c) {
        total.shift[c] = total.shift[c] * next->scale[c] + next->shift[c];
        total.scale[c] *= next->scale[c];
      }
      const ir::Node& reader = node_of(folded.back());
      if (name != reader.name) name += " " + reader.name;
      value = reader.outputs[0];
    }
    if (folded.empty() || !is_finite(total)) return false;
    for (const ir::NodeId node : folded) dead_[static_cast<size_t>(node)] = 1;
    const std::string stem = value_of(value).name;
    const Tensor weights = scaled_weights(value_of(inputs[1]).constant, total);
    const Tensor bias = scaled_bias(biased ? value_of(inputs[2]).constant : Tensor(), dtype, total);
    const ir::ValueId weights_id = ops::add_constant(graph_, stem + "/weight", weights),
                      bias_id = ops::add_constant(graph_, stem + "/bias", bias);
    ir::Node& node = node_of(id);
    node.name = name;
    node.inputs.resize(3);
    node.inputs[1] = weights_id;
    node.inputs[2] = bias_id;
    value_of(node.outputs[0]).producer = -1;
    node.outputs[0] = value;
    value_of(value).producer = id;
    return true;
  }

  std::vector<double> all(double number) const {
    return std::vector<double>(static_cast<size_t>(channels_), number);
  }

  static bool is_finite(const Affine& a) {
    bool finite = true;
    for (size_t c = 0; c < a.scale.size(); ++c) {
      finite &= std::isfinite(a.scale[c]) && std::isfinite(a.shift[c]);
    }
    return finite;
  }

  // What the only reader makes of the value, if it is affine in each channel.
  std::optional<Affine> scaled_by_reader(ir::ValueId value) {
    const auto& readers = consumers_[static_cast<size_t>(value)];
    if (readers.size() != 1 || is_output_[static_cast<size_t>(value)]) return std::nullopt;
    const ir::Node& reader = node_of(readers[0]);
    if (!reader.def || !reader.def->lower || reader.outputs.size() != 1) return std::nullopt;
    const ir::Value& result = value_of(reader.outputs[0]);
    if (result.shape != value_of(value).shape || result.dtype != value_of(value).dtype) {
      return std::nullopt;
    }
    const std::vector<ir::Expr> axes = ops::shared_index(graph_, reader.outputs[0]);
    ops::Lowering lowering(graph_, [&](ir::ValueId v) { return v == reader.outputs[0]; });
    const ir::ChannelAffineForms forms(graph_, axes[1], channels_, [&](ir::Expr e) {
      return e->op == ir::ExprOp::Read && e->integer == value && e->args == axes;
    });
    const ir::Expr body = lowering.element(reader.outputs[0], axes);
    const auto affine = forms.of(body);
    return affine && !affine->constant ? affine : std::nullopt;
  }

  static double number_at(const Tensor& tensor, int64_t i) {
    return tensor.dtype() == DType::Float64 ? tensor.as<double>()[i]
                                            : static_cast<double>(tensor.as<float>()[i]);
  }

  template <typename Body>
  static void for_each_number(const Tensor& tensor, const Body& body) {
    for (int64_t i = 0; i < tensor.size(); ++i) body(i, number_at(tensor, i));
  }

  static void set(Tensor& tensor, int64_t i, double number) {
    if (tensor.dtype() == DType::Float64) {
      tensor.as<double>()[i] = number;
    } else {
      tensor.as<float>()[i] = static_cast<float>(number);
    }
  }

  Tensor scaled_weights(const Tensor& weights, const Affine& by) const {
    Tensor result(weights.dtype(), weights.dims());
    const int64_t each = channels_ == 0 ? 1 : weights.size() / channels_;
    for_each_number(weights, [&](int64_t i, double number) {
      set(result, i, number * by.scale[static_cast<size_t>(i / each)]);
    });
    return result;
  }

  Tensor scaled_bias(const Tensor& bias, DType dtype, const Affine& by) const {
    Tensor result(dtype, {channels_});
    for (int64_t c = 0; c < channels_; ++c) set(result, c, by.shift[static_cast<size_t>(c)]);
    if (!bias.defined()) return result;
    for_each_number(bias, [&](int64_t c, double number) {
      const auto i = static_cast<size_t>(c);
      set(result, c, number * by.scale[i] + by.shift[i]);
    });
    return result;
  }

  ir::Graph& graph_;
  const std::vector<std::vector<ir::NodeId>> consumers_;
  std::vector<char> is_output_, dead_;
  int64_t channels_ = 0;  // of the node at hand
};

}  // namespace

bool fold_scales(ir::Graph& graph) { return ScaleFolder(graph).run(); }

}  // namespace redfuser::passes
