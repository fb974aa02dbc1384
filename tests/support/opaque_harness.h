// Runs one opaque node on given tensors.
#pragma once

#include "cpu/opaque/opaque.h"
#include "cpu/select/make_kernel.h"
#include "support/graph_builder.h"

namespace redfuser::testing {

struct NodeCase {
  std::string op;
  std::vector<Tensor> inputs;  // undefined: absent
  ir::Attributes attributes = {};
  int outputs = 1;
  int opset = 21;
};

// The outputs. Inputs are graph inputs, so that nothing is known of their contents beforehand.
inline std::vector<Tensor> run_node(const NodeCase& test) {
  GraphBuilder builder;
  std::vector<ir::ValueId> ids;
  std::vector<Tensor> tensors;
  for (const Tensor& tensor : test.inputs) {
    if (!tensor.defined()) {
      ids.push_back(ir::kAbsent);
      continue;
    }
    ids.push_back(builder.input(fmt::format("x{}", ids.size()), tensor.dtype(), tensor.dims()));
    tensors.push_back(tensor);
  }
  builder.node(test.op, ids, test.attributes, test.outputs, test.opset);
  tensors.resize(builder.graph.values.size());
  std::vector<int64_t> symbols;
  ThreadPool pool(3);
  cpu::RunContext context{builder.graph, tensors, symbols, pool};
  cpu::make_kernel(builder.graph, fuse::OpaqueStep{0})->run(context);
  std::vector<Tensor> outputs;
  for (ir::ValueId id : builder.graph.nodes[0].outputs) {
    // The sizes that the run found agree with the shape rule.
    EXPECT_EQ(cpu::dims_of(builder.graph, id, symbols), tensors[id].dims());
    outputs.push_back(tensors[id]);
  }
  return outputs;
}

inline void expect_values(const Tensor& tensor, const Dims& dims, const std::vector<double>& values,
                          double tolerance = 0) {
  EXPECT_EQ(tensor.dims(), dims);
  std::vector<double> actual = values_of(tensor);
  ASSERT_EQ(actual.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(actual[i], values[i], tolerance) << "element " << i;
  }
}

}  // namespace redfuser::testing
