// Nodes that are added to a graph.
#include "ops/graph_editor.h"

#include <gtest/gtest.h>

#include "ops/op_def.h"
#include "ops/registry.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

TEST(GraphEditor, NodesStandLastUntilTheyArePlaced) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {2, 3});
  b.node("Exp", {x});
  const ir::ValueId y = b.node("Tanh", {x});
  b.output(y);
  ops::GraphEditor editor(b.graph);
  EXPECT_TRUE(editor.empty());
  const ir::ValueId late = editor.add(2, ops::new_node("Sin", {y}), "late");
  const ir::ValueId first = editor.add(0, ops::new_node("Neg", {x}), "first");
  const ir::ValueId second = editor.add(0, ops::new_node("Abs", {first}), "second");
  EXPECT_EQ(b.graph.nodes[1].op, "Tanh");
  EXPECT_EQ(b.graph.values[static_cast<size_t>(second)].shape.size(), 2u);
  editor.place();
  verify(b.graph);
  std::vector<std::string> names;
  for (const ir::Node& node : b.graph.nodes) names.push_back(node.op);
  EXPECT_EQ(names, (std::vector<std::string>{"Neg", "Abs", "Exp", "Tanh", "Sin"}));
  EXPECT_EQ(b.graph.values[static_cast<size_t>(late)].producer, 4);
  EXPECT_EQ(b.graph.values[static_cast<size_t>(y)].producer, 3);
}

TEST(GraphEditor, NodesTakeTheVersionAndNameOfTheirOrigin) {
  ir::Node origin;
  origin.name = "/layer/Softmax";
  origin.source = 7;
  origin.opset = 11;
  EXPECT_EQ(ops::new_node_for(origin, "Add", {0, 1}).opset, ops::kNodeOpset);
  origin.opset = 18;
  const ir::Node node = ops::new_node_for(origin, "Add", {0, 1});
  EXPECT_EQ(node.opset, 18);
  EXPECT_EQ(node.name, origin.name);
  EXPECT_EQ(node.source, 7);
  EXPECT_EQ(node.def, ops::find_op("", "Add", 18));
  origin.domain = "com.microsoft";
  EXPECT_EQ(ops::new_node_for(origin, "Add", {0, 1}).opset, ops::kNodeOpset);
  EXPECT_THROW(ops::new_node("NoSuchOperator", {}), InternalError);
}

}  // namespace
}  // namespace redfuser::testing
