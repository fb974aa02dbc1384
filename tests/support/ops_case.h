// One operator, its inputs, and the result by hand: shapes and lowered elements are compared.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "ir/evaluate.h"
#include "ops/lowering.h"
#include "ops/sizes.h"
#include "reference/execute/evaluation.h"
#include "reference/expressions/lanes.h"
#include "support/graph_builder.h"

namespace redfuser::testing {

struct OpCase {
  std::string name, op;
  int opset = 21;
  std::vector<Tensor> inputs;      // a Tensor() is an absent input
  std::vector<int> constant = {};  // which of the inputs are constants of the graph
  ir::Attributes attributes = {};
  Dims dims;
  std::vector<double> values;
  int output = 0, outputs = 1;
};

inline std::ostream& operator<<(std::ostream& out, const OpCase& c) { return out << c.name; }

// Evaluates every element of `value` from the tensors of its graph's inputs, expanding all nodes.
class Reference {
 public:
  explicit Reference(const ir::Graph& graph) : graph_(graph), tensors_(graph.values.size()) {
    for (size_t i = 0; i < tensors_.size(); ++i) tensors_[i] = graph.values[i].constant;
  }
  void feed(ir::ValueId id, Tensor tensor) {
    const ir::Value& value = graph_.values[id];
    for (size_t d = 0; d < value.shape.size(); ++d) {
      if (value.shape[d]->op == ir::ExprOp::Symbol) bind(value.shape[d], tensor.dims()[d]);
    }
    tensors_[id] = std::move(tensor);
  }
  void bind(ir::Expr symbol, int64_t size) {
    symbols_.resize(std::max<size_t>(symbols_.size(), symbol->integer + 1), -1);
    symbols_[symbol->integer] = size;
  }
  Dims dims(ir::ValueId id) const {
    Dims dims;
    for (ir::Expr size : graph_.values[id].shape) dims.push_back(evaluate_size(size, symbols_));
    return dims;
  }
  std::vector<double> elements(ir::ValueId id) const {
    ops::Lowering lowering(graph_, [](ir::ValueId) { return true; });
    const auto axes = ops::output_axes(graph_, id);
    ir::Expr element = lowering.element(id, axes);
    const Dims sizes = dims(id);
    std::vector<double> result;
    for (int64_t i = 0; i < element_count(sizes); ++i) {
      const auto index = index_of(i, sizes);
      result.push_back(
          evaluate(element, [&](ir::Expr leaf) { return leaf_value(leaf, axes, index); }));
    }
    return result;
  }

 private:
  static Dims index_of(int64_t position, const Dims& dims) {
    Dims index(dims.size());
    for (size_t d = dims.size(); d-- > 0;) {
      index[d] = position % dims[d];
      position /= dims[d];
    }
    return index;
  }
  double leaf_value(ir::Expr leaf, const std::vector<ir::Expr>& axes, const Dims& index) const {
    if (leaf->op == ir::ExprOp::Symbol) return static_cast<double>(evaluate_size(leaf, symbols_));
    if (leaf->op == ir::ExprOp::Read) return read(leaf);
    for (size_t d = 0; d < axes.size(); ++d) {
      if (axes[d] == leaf) return static_cast<double>(index[d]);
    }
    ADD_FAILURE() << "a free axis " << to_string(*graph_.pool, leaf);
    return 0;
  }
  double read(ir::Expr leaf) const {
    const Tensor& tensor = tensors_[leaf->integer];
    int64_t position = 0;
    for (size_t d = 0; d < leaf->args.size(); ++d) {
      const int64_t at = leaf->args[d]->integer, size = tensor.dims()[d];
      EXPECT_TRUE(at >= 0 && at < size) << "read at " << at << " of " << size;
      if (at < 0 || at >= size) return 0;
      position = position * size + at;
    }
    return values_of(tensor)[position];
  }

  const ir::Graph& graph_;
  std::vector<Tensor> tensors_;
  std::vector<int64_t> symbols_;
};

// The case's graph; with `symbolic` every dimension of a non-constant input is a symbol.
inline ir::ValueId build(GraphBuilder& builder, const OpCase& c, bool symbolic,
                         std::vector<std::pair<ir::ValueId, Tensor>>& feeds) {
  std::vector<ir::ValueId> inputs;
  int symbol = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Tensor& tensor = c.inputs[i];
    const bool constant = std::count(c.constant.begin(), c.constant.end(), static_cast<int>(i));
    if (!tensor.defined()) {
      inputs.push_back(ir::kAbsent);
    } else if (constant) {
      inputs.push_back(builder.constant(tensor));
    } else {
      Dims dims = tensor.dims();
      for (int64_t& dim : dims) dim = symbolic && dim != 1 ? -1 - symbol++ : dim;
      inputs.push_back(builder.input("x" + std::to_string(i), tensor.dtype(), dims));
      feeds.push_back({inputs.back(), tensor});
    }
  }
  const ir::ValueId first = builder.node(c.op, inputs, c.attributes, c.outputs, c.opset);
  return builder.graph.nodes[builder.graph.values[first].producer].outputs[c.output];
}

inline void expect_values(const OpCase& c, const Dims& dims, const std::vector<double>& values) {
  EXPECT_EQ(dims, c.dims);
  ASSERT_EQ(values.size(), c.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(c.values[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << "element " << i << " is " << values[i];
    } else if (std::isinf(c.values[i])) {
      EXPECT_EQ(values[i], c.values[i]) << "element " << i;
    } else {
      EXPECT_NEAR(values[i], c.values[i], 1e-6 * (1 + std::abs(c.values[i]))) << "element " << i;
    }
  }
}

// The elements one by one, and all of them by src/reference.
inline void check(const OpCase& c, bool symbolic) {
  GraphBuilder builder;
  std::vector<std::pair<ir::ValueId, Tensor>> feeds;
  const ir::ValueId result = build(builder, c, symbolic, feeds);
  Reference elements(builder.graph);
  for (auto& [id, tensor] : feeds) elements.feed(id, tensor);
  expect_values(c, elements.dims(result), elements.elements(result));
  SCOPED_TRACE("by src/reference");
  const Tensor exact = reference::Evaluation(builder.graph).evaluate(result, [&](ir::ValueId id) {
    const auto feed = std::find_if(feeds.begin(), feeds.end(),
                                   [id](const auto& entry) { return entry.first == id; });
    return feed == feeds.end() ? nullptr : &feed->second;
  });
  expect_values(c, exact.dims(), values_of(exact));
}

inline std::string case_name(const ::testing::TestParamInfo<OpCase>& info) {
  return info.param.name;
}

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

using List = std::vector<int64_t>;
inline Tensor booleans(Dims dims, const std::vector<int64_t>& values) {
  return make_tensor(DType::Bool, std::move(dims), values);
}

}  // namespace redfuser::testing
