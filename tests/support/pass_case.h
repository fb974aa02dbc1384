// A graph that a pass changes, with the values of its outputs before and after.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/graph_values.h"

namespace redfuser::testing {

inline std::vector<std::string> output_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.outputs) names.push_back(graph.values[id].name);
  return names;
}

// Runs a pass, verifies, and checks that the outputs keep their names and values, and that a second
// run changes nothing.
inline bool run_pass(bool (*pass)(ir::Graph&), ir::Graph& graph) {
  verify(graph);
  const std::vector<Tensor> inputs = seeded_inputs(graph), before = outputs_of(graph, inputs);
  const std::vector<std::string> names = output_names(graph);
  bool changed = pass(graph);
  verify(graph);
  EXPECT_EQ(output_names(graph), names);
  expect_same_values(outputs_of(graph, inputs), before, graph);
  EXPECT_FALSE(pass(graph)) << to_string(graph);
  verify(graph);
  return changed;
}

inline std::vector<std::string> operators(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& node : graph.nodes) names.push_back(node.op);
  return names;
}
using Ops = std::vector<std::string>;

class Passes : public ::testing::Test {
 protected:
  ir::ValueId input(const Dims& dims = {-1, 4}) {
    return b.input(fmt::format("x{}", b.graph.inputs.size()), DType::Float32, dims);
  }
  ir::ValueId named_output(ir::ValueId id, const std::string& name) {
    b.graph.values[id].name = name;
    b.output(id);
    return id;
  }
  GraphBuilder b;
};

}  // namespace redfuser::testing
