// A region's graph has what the region uses, under the same names, however large the model is.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/select/region_graph.h"
#include "fuse/make_plan.h"
#include "onnx/import/import.h"
#include "redfuser/redfuser.h"

namespace redfuser {
namespace {

// Layers of a masked softmax and a product. The mask is made of indices.
fuse::Plan plan_of_layers(int layers) {
  std::string text =
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float[n, 48] x0, float[48, 48] w) => (y) {"
      " zero = Constant<value = int64 {0}>() size = Constant<value = int64 {48}>()"
      " one = Constant<value = int64 {1}>() limit = Constant<value = int64 {40}>()"
      " low = Constant<value = float {-1e9}>() at = Range(zero, size, one)"
      " seen = Less(at, limit)";
  for (int i = 0; i < layers; ++i) {
    text += fmt::format(
        " a{0} = MatMul(x{0}, w) m{0} = Where(seen, a{0}, low) x{1} = Softmax(m{0})", i, i + 1);
  }
  text += fmt::format(" y = Relu(x{}) }}", layers);
  const Model model = Model::parse(text);
  return fuse::make_plan(std::make_shared<const ir::Graph>(clone(model.handle()->graph)), {});
}

std::vector<std::string> names_of(const ir::Graph& graph, const std::vector<ir::ValueId>& values) {
  std::vector<std::string> names;
  for (const ir::ValueId id : values) {
    names.push_back(id == ir::kAbsent ? "" : graph.values[static_cast<size_t>(id)].name);
  }
  return names;
}

TEST(RegionGraph, DoesNotGrowWithTheModel) {
  for (const int layers : {1, 3, 20}) {
    const fuse::Plan plan = plan_of_layers(layers);
    int regions = 0;
    for (const fuse::Step& step : plan.steps) {
      if (!std::holds_alternative<fuse::CascadeStep>(step.kind)) continue;
      ++regions;
      const cpu::RegionGraph region = cpu::region_graph(*plan.graph, step);
      verify(*region.graph);
      EXPECT_LE(region.graph->values.size(), 32u) << layers;
      ASSERT_EQ(region.values.size(), region.graph->values.size());
      EXPECT_EQ(names_of(*region.graph, region.step.reads), names_of(*plan.graph, step.reads));
      EXPECT_EQ(names_of(*region.graph, region.step.writes), names_of(*plan.graph, step.writes));
      ASSERT_EQ(region.step.nodes.size(), step.nodes.size());
      for (size_t i = 0; i < step.nodes.size(); ++i) {
        const ir::Node& own = region.graph->nodes[static_cast<size_t>(region.step.nodes[i])];
        const ir::Node& whole = plan.graph->nodes[static_cast<size_t>(step.nodes[i])];
        EXPECT_EQ(names_of(*region.graph, own.inputs), names_of(*plan.graph, whole.inputs));
        EXPECT_EQ(names_of(*region.graph, own.outputs), names_of(*plan.graph, whole.outputs));
      }
    }
    EXPECT_EQ(regions, layers);
  }
}

}  // namespace
}  // namespace redfuser
