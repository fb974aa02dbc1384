#include "ops/registry.h"

#include <algorithm>
#include <tuple>

#include "ops/families.h"

namespace redfuser::ops {
namespace {

auto key(const OpDef& op) { return std::tie(op.domain, op.name, op.since); }

std::vector<OpDef> collect() {
  std::vector<OpDef> all;
  for (auto family :
       {arithmetic_ops,    logic_ops,     function_ops,  activation_ops, conversion_ops,
        reshape_ops,       concat_ops,    slice_ops,     pad_ops,        repeat_ops,
        gather_ops,        generator_ops, reduction_ops, ranking_ops,    scan_ops,
        normalization_ops, matmul_ops,    gemm_ops,      einsum_ops,     quantization_ops,
        window_ops,        resize_ops,    grid_ops,      scatter_ops,    recurrent_ops,
        sequence_ops,      string_ops,    learning_ops,  image_ops,      signal_ops,
        random_ops,        legacy_ops}) {
    const auto ops = family();
    all.insert(all.end(), ops.begin(), ops.end());
  }
  std::sort(all.begin(), all.end(), [](auto& a, auto& b) { return key(a) < key(b); });
  return all;
}

// Operators that ONNX itself expresses by a function body from this version on.
bool has_function_body(std::string_view domain, std::string_view name, int version) {
  return domain.empty() && version >= 13 && (name == "Softmax" || name == "LogSoftmax");
}

}  // namespace

std::span<const OpDef> all_ops() {
  static const std::vector<OpDef> ops = collect();
  return ops;
}

const OpDef* find_op(std::string_view domain, std::string_view name, int version) {
  if (domain == "ai.onnx") domain = "";
  if (has_function_body(domain, name, version)) return nullptr;
  const OpDef* found = nullptr;
  for (const OpDef& op : all_ops()) {
    if (op.domain == domain && op.name == name && op.since <= version) found = &op;
  }
  return found;
}

bool has_channel_weights(const ir::Node& node) {
  return node.op == "Conv" && (node.domain.empty() || node.domain == "ai.onnx");
}

bool takes_epilogue(const ir::Node& node) {
  const bool integers =
      node.op == "ConvInteger" && (node.domain.empty() || node.domain == "ai.onnx");
  return integers || has_channel_weights(node);
}

// A window that is larger than the padding, and without gaps, has an element of the input, unless
// ceil_mode lets it begin within the padding behind it.
bool takes_maxima(const ir::Graph& graph, const ir::Node& node) {
  const NodeView view(graph, node);
  const bool ours = node.op == "MaxPool" && (node.domain.empty() || node.domain == "ai.onnx");
  if (!ours || view.output_count() != 1 || view.integer("ceil_mode", 0) != 0) return false;
  const auto kernel = view.small_integers("kernel_shape", {});
  for (const int64_t dilation : view.small_integers("dilations", {})) {
    if (dilation != 1) return false;
  }
  const auto pads = view.small_integers("pads", {});
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] >= kernel[i % kernel.size()]) return false;
  }
  return true;
}

}  // namespace redfuser::ops
