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

}  // namespace

void generate_opaque(StepBuilder& builder, const fuse::OpaqueStep& step) {
  const ir::Node& node = builder.graph.nodes[static_cast<size_t>(step.node)];
  const auto found =
      std::find_if(std::begin(kEntries), std::end(kEntries), [&](const Entry& entry) {
        return entry.name == node.op && (node.domain.empty() || node.domain == "ai.onnx");
      });
  if (found == std::end(kEntries)) builder.fail("this operator has no kernel on a GPU");
  found->generate(builder, ops::NodeView(builder.graph, node));
}

}  // namespace redfuser::codegen
