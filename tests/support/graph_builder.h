// Graphs built by hand, for tests.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/dispatch.h"
#include "cpu/step.h"
#include "ir/graph.h"
#include "ops/infer.h"
#include "ops/op_def.h"
#include "ops/registry.h"

namespace redfuser::testing {

template <typename T>
Tensor make_tensor(DType dtype, Dims dims, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(dims));
  EXPECT_EQ(tensor.size(), static_cast<int64_t>(values.size()));
  dispatch(dtype, [&](auto tag) {
    using To = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) {
      tensor.as<To>()[i] = static_cast<To>(static_cast<Arithmetic<To>>(values[i]));
    }
  });
  return tensor;
}
inline Tensor floats(Dims dims, const std::vector<float>& values) {
  return make_tensor(DType::Float32, std::move(dims), values);
}
inline Tensor integers(Dims dims, const std::vector<int64_t>& values) {
  return make_tensor(DType::Int64, std::move(dims), values);
}

// The elements of a tensor of any dtype.
inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      values.push_back(static_cast<double>(tensor.as<T>()[i]));
    }
  });
  return values;
}

class GraphBuilder {
 public:
  GraphBuilder() { graph.pool = std::make_shared<ir::ExprPool>(); }

  // Dimensions are sizes; -1 - k is the symbol "sk".
  ir::ValueId input(const std::string& name, DType dtype, const Dims& dims) {
    ir::ValueId id = graph.add_value(name, dtype);
    for (int64_t dim : dims) {
      graph.values[id].shape.push_back(dim >= 0 ? graph.pool->integer(dim)
                                                : graph.pool->symbol(fmt::format("s{}", -1 - dim)));
    }
    graph.inputs.push_back(id);
    return id;
  }

  ir::ValueId constant(Tensor tensor) {
    ir::ValueId id = graph.add_value(fmt::format("constant{}", graph.values.size()));
    ops::set_constant(graph, id, std::move(tensor));
    return id;
  }

  // Adds a node with `outputs` outputs and infers it; returns its first output.
  ir::ValueId node(const std::string& op, std::vector<ir::ValueId> inputs,
                   ir::Attributes attributes = {}, int outputs = 1, int opset = 21) {
    ir::Node node;
    node.op = op;
    node.name = fmt::format("{}_{}", op, graph.nodes.size());
    node.opset = opset;
    node.def = ops::find_op("", op, opset);
    if (node.def == nullptr) throw std::runtime_error("no operator " + op);
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    for (int i = 0; i < outputs; ++i) {
      ir::ValueId id = graph.add_value(fmt::format("{}:{}", node.name, i));
      graph.values[id].producer = static_cast<ir::NodeId>(graph.nodes.size());
      graph.values[id].output_index = i;
      node.outputs.push_back(id);
    }
    graph.nodes.push_back(std::move(node));
    ops::infer_node(graph, static_cast<ir::NodeId>(graph.nodes.size()) - 1);
    return graph.nodes.back().outputs[0];
  }

  void output(ir::ValueId id) { graph.outputs.push_back(id); }

  ir::Graph graph;
};

}  // namespace redfuser::testing
