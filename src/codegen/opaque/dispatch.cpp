#include "codegen/opaque/dispatch.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "codegen/opaque/opaque_kernels.h"

namespace redfuser::codegen {
namespace {

struct Entry {
  std::string_view name;
  void (*generate)(StepBuilder&, const ops::NodeView&);
};

constexpr Entry kEntries[] = {
    {"AveragePool", generate_average_pool},
    {"ConvTranspose", generate_conv_transpose},
    {"MaxPool", generate_max_pool},
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

}  // namespace

bool has_opaque_kernel(std::string_view domain, std::string_view name) {
  return find_entry(domain, name) != nullptr;
}

void generate_opaque(StepBuilder& builder, const fuse::OpaqueStep& step) {
  const ir::Node& node = builder.graph.nodes[static_cast<size_t>(step.node)];
  const Entry* found = find_entry(node.domain, node.op);
  if (found == nullptr) builder.fail("this operator has no kernel on a GPU");
  found->generate(builder, ops::NodeView(builder.graph, node));
}

}  // namespace redfuser::codegen
