#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "ir/same_attribute.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

// Hashes both ends and a few places between, so that gigabytes of weights need not be read. Tensors
// of equal hashes are compared in full.
uint64_t hash_tensor(const Tensor& tensor) {
  constexpr size_t kWhole = 4096, kPiece = 256, kPieces = 8;
  uint64_t hash = hash_combine(static_cast<uint64_t>(tensor.dtype()), tensor.bytes());
  for (int64_t dim : tensor.dims()) hash = hash_combine(hash, static_cast<uint64_t>(dim));
  const auto* data = static_cast<const char*>(tensor.data());
  if (tensor.bytes() <= kWhole) return hash_bytes(data, tensor.bytes(), hash);
  for (size_t i = 0; i < kPieces; ++i) {
    size_t at = (tensor.bytes() - kPiece) / (kPieces - 1) * i;
    hash = hash_bytes(data + at, kPiece, hash);
  }
  return hash;
}

uint64_t hash_node(const ir::Node& node, const Rewrite& rewrite) {
  uint64_t hash = hash_text(node.op, hash_text(node.domain));
  for (ir::ValueId input : node.inputs) {
    hash = hash_combine(hash, static_cast<uint64_t>(rewrite.resolve(input)));
  }
  for (const auto& [name, attribute] : node.attributes) hash = hash_text(name, hash);
  return hash;
}

// True if the outputs of `b` are those of `a`.
bool same_node(const ir::Node& a, const ir::Node& b, const Rewrite& rewrite) {
  if (a.def != b.def || a.op != b.op || a.domain != b.domain || a.opset != b.opset ||
      a.inputs.size() != b.inputs.size() || a.outputs.size() < b.outputs.size()) {
    return false;
  }
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    if (rewrite.resolve(a.inputs[i]) != rewrite.resolve(b.inputs[i])) return false;
  }
  for (size_t i = 0; i < b.outputs.size(); ++i) {
    if (b.outputs[i] != ir::kAbsent && a.outputs[i] == ir::kAbsent) return false;
  }
  return ir::same_attributes(a.attributes, b.attributes);
}

void merge_constants(ir::Graph& graph, Rewrite& rewrite) {
  std::unordered_map<uint64_t, std::vector<ir::ValueId>> seen;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const ir::Value& value = graph.values[i];
    if (!value.is_constant() || value.producer >= 0 || value.dtype == DType::String) continue;
    auto& alike = seen[hash_tensor(value.constant)];
    auto same = std::find_if(alike.begin(), alike.end(), [&](ir::ValueId other) {
      return ir::same_tensor(graph.values[other].constant, value.constant);
    });
    if (same == alike.end()) {
      alike.push_back(static_cast<ir::ValueId>(i));
    } else {
      rewrite.replace(static_cast<ir::ValueId>(i), *same);
    }
  }
}

// Replaces all outputs of `node` by those of `first`, or none.
void replace_node(const ir::Node& first, ir::NodeId id, const ir::Graph& graph, Rewrite& rewrite) {
  const std::vector<ir::ValueId>& outputs = graph.nodes[id].outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != ir::kAbsent && !rewrite.can_replace(outputs[i], first.outputs[i])) return;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != ir::kAbsent) rewrite.replace(outputs[i], first.outputs[i]);
  }
  rewrite.remove(id);
}

}  // namespace

bool eliminate_common(ir::Graph& graph) {
  Rewrite rewrite(graph);
  merge_constants(graph, rewrite);
  std::unordered_map<uint64_t, std::vector<ir::NodeId>> seen;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    if (node.def != nullptr && node.def->random) continue;
    auto& alike = seen[hash_node(node, rewrite)];
    auto same = std::find_if(alike.begin(), alike.end(), [&](ir::NodeId other) {
      return same_node(graph.nodes[other], node, rewrite);
    });
    if (same == alike.end()) {
      alike.push_back(static_cast<ir::NodeId>(n));
      continue;
    }
    replace_node(graph.nodes[*same], static_cast<ir::NodeId>(n), graph, rewrite);
  }
  return rewrite.apply();
}

}  // namespace redfuser::passes
