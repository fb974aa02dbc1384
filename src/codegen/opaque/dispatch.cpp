#include "codegen/opaque/dispatch.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "codegen/contraction/contraction_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "ops/lowering.h"
#include "ops/registry.h"

namespace redfuser::codegen {
namespace {

struct Entry {
  std::string_view name;
  void (*generate)(StepBuilder&, const ops::NodeView&);
  bool finds_size = false;
};

constexpr Entry kEntries[] = {
    {"AveragePool", generate_average_pool},
    {"Compress", generate_compress, true},
    {"ConvTranspose", generate_conv_transpose},
    {"LpPool", generate_lp_pool},
    {"MaxPool", generate_max_pool},
    {"MaxUnpool", generate_max_unpool},
    {"NonMaxSuppression", generate_non_max_suppression, true},
    {"NonZero", generate_nonzero, true},
    {"Scatter", generate_scatter_elements},
    {"ScatterElements", generate_scatter_elements},
    {"ScatterND", generate_scatter_nd},
};

const Entry* find_entry(std::string_view domain, std::string_view name) {
  if (!domain.empty() && domain != "ai.onnx") return nullptr;
  const auto* found = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(kEntries) ? nullptr : found;
}

// Terms of the longest sum of an element that a step has for all its sizes.
int64_t known_terms(ir::Expr element) {
  int64_t terms = 1;
  visit(element, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Reduce && e->extent()->is_constant()) {
      terms = std::max(terms, e->extent()->integer);
    }
  });
  return terms;
}

// An elementwise kernel for every output.
void generate_elements(StepBuilder& builder, const ir::Node& node) {
  const ops::LowerContext::Reader read = [&](ir::ValueId id, std::vector<ir::Expr> index) {
    return builder.pool().read(id, builder.dtype_of(id), std::move(index));
  };
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const ir::ValueId value = node.outputs[k];
    if (value == ir::kAbsent) continue;
    const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, value);
    ops::LowerContext context(builder.graph, node, static_cast<int>(k), axes, read);
    ir::Expr element = node.def->element(context);
    if (element == nullptr) builder.fail("this form has no kernel on a GPU");
    // The CPU's algorithm needs fewer, such as the FFT of a long signal.
    constexpr int64_t kMostTerms = 4096, kMostOfTiles = int64_t{1} << 16;
    const int64_t terms = known_terms(element);
    if (terms > kMostOfTiles) builder.fail("it has too many terms for a GPU");
    const Offer other =
        add_reductions(builder, "elements", builder.memory_axes(value, axes),
                       {value, builder.flat.flat(element), builder.offset_of(value, axes)},
                       "elements of " + node.op + "\n");
    if (terms > kMostTerms && !other.refusal.empty()) {
      builder.fail("it has too many terms for a GPU: " + other.refusal);
    }
  }
}

}  // namespace

bool has_opaque_kernel(std::string_view domain, std::string_view name) {
  if (find_entry(domain, name) != nullptr) return true;
  const auto ops = ops::all_ops();
  return std::any_of(ops.begin(), ops.end(), [&](const ops::OpDef& def) {
    return def.name == name && def.domain == domain && def.element != nullptr;
  });
}

bool has_size_kernel(std::string_view domain, std::string_view name) {
  const Entry* found = find_entry(domain, name);
  return found != nullptr && found->finds_size;
}

void generate_opaque(StepBuilder& builder, const fuse::OpaqueStep& step) {
  const ir::Node& node = builder.graph.nodes[static_cast<size_t>(step.node)];
  const Entry* found = find_entry(node.domain, node.op);
  if (found == nullptr && node.def->element != nullptr) return generate_elements(builder, node);
  if (found == nullptr) builder.fail("this operator has no kernel on a GPU");
  found->generate(builder, ops::NodeView(builder.graph, node));
}

}  // namespace redfuser::codegen
