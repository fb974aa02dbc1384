// Values of a graph, for rewrites that must keep them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/infer.h"
#include "passes/node_evaluator.h"
#include "support/graph_builder.h"

namespace redfuser::testing {

// An input's tensor; sizes that are symbols are 3, 4, ... by their number. Floats are normal,
// integers from -3 to 3.
inline Tensor seeded_tensor(const ir::Value& value, std::mt19937& random) {
  Dims dims;
  for (const ir::Expr size : value.shape) {
    dims.push_back(size->op == ir::ExprOp::Symbol ? 3 + size->integer : size->integer);
  }
  const bool real = is_float(value.dtype);
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (double& x : values) {
    x = real ? std::normal_distribution<double>()(random)
             : std::uniform_int_distribution<int>(-3, 3)(random);
  }
  return make_tensor(value.dtype, dims, values);
}

inline std::vector<Tensor> seeded_inputs(const ir::Graph& graph, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<Tensor> inputs;
  for (const ir::ValueId id : graph.inputs) {
    inputs.push_back(seeded_tensor(graph.values[id], random));
  }
  return inputs;
}

// The graph's outputs, node by node.
inline std::vector<Tensor> outputs_of(ir::Graph graph, const std::vector<Tensor>& inputs) {
  ThreadPool pool(1);
  passes::NodeEvaluator evaluator(pool);
  EXPECT_EQ(graph.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) ops::set_constant(graph, graph.inputs[i], inputs[i]);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto id = static_cast<ir::NodeId>(n);
    ops::infer_node(graph, id);  // the sizes are known now
    evaluator.evaluate(graph, id);
  }
  std::vector<Tensor> outputs;
  for (const ir::ValueId id : graph.outputs) outputs.push_back(graph.values[id].constant);
  return outputs;
}

// Equal up to the order of fp32 sums. `graph` is told where they are not.
inline void expect_same_values(const std::vector<Tensor>& got, const std::vector<Tensor>& expected,
                               const ir::Graph& graph) {
  constexpr double kShare = 1e-5;
  ASSERT_EQ(got.size(), expected.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].dtype(), expected[k].dtype()) << "output " << k << "\n" << to_string(graph);
    ASSERT_EQ(got[k].dims(), expected[k].dims()) << "output " << k << "\n" << to_string(graph);
    const std::vector<double> x = values_of(got[k]), y = values_of(expected[k]);
    for (size_t i = 0; i < x.size(); ++i) {
      const bool same = x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])) ||
                        std::abs(x[i] - y[i]) <= kShare * (1 + std::abs(y[i]));
      ASSERT_TRUE(same) << "output " << k << ", element " << i << ": " << x[i] << ", not " << y[i]
                        << "\n"
                        << to_string(graph);
    }
  }
}

}  // namespace redfuser::testing
