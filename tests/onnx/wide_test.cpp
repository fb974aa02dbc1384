// Graphs that are wide, long or deeply shared: they are planned and run in time in proportion to
// them, with little of the stack. Sizes are such that time in their square, or recursion over them,
// does not end within a test's.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "redfuser/redfuser.h"
#include "support/proto_file.h"

namespace redfuser {
namespace {

constexpr int kWide = 50'000, kLong = 20'000;

// A model of the nodes that `build` adds, from x: float[`size`] to y: float[?].
::onnx::ModelProto model_of(int64_t size, const std::function<void(::onnx::GraphProto&)>& build,
                            int outputs = 1) {
  ::onnx::ModelProto model;
  model.set_ir_version(9);
  model.add_opset_import()->set_version(17);
  ::onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("g");
  auto declare = [&](::onnx::ValueInfoProto & info, const std::string& name) -> auto& {
    info.set_name(name);
    auto& type = *info.mutable_type()->mutable_tensor_type();
    type.set_elem_type(::onnx::TensorProto::FLOAT);
    return *type.mutable_shape()->add_dim();
  };
  declare(*graph.add_input(), "x").set_dim_value(size);
  for (int i = 0; i < outputs; ++i) {
    declare(*graph.add_output(), outputs == 1 ? "y" : "y" + std::to_string(i)).set_dim_param("m");
  }
  build(graph);
  return model;
}

::onnx::NodeProto& add(::onnx::GraphProto& graph, const std::string& op,
                       const std::vector<std::string>& inputs, const std::string& output) {
  ::onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(op);
  for (const auto& input : inputs) node.add_input(input);
  if (!output.empty()) node.add_output(output);
  return node;
}

void set(::onnx::NodeProto& node, const std::string& name, int64_t value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
}

// A chain of nodes over `ops` in turn, from `from` to `to`.
void add_chain(::onnx::GraphProto& graph, const std::vector<std::string>& ops, int count,
               const std::string& from, const std::string& to, bool twice = false) {
  std::string value = from;
  for (int i = 0; i < count; ++i) {
    const std::string next = i + 1 < count ? to + "_" + std::to_string(i) : to;
    const std::string& op = ops[static_cast<size_t>(i) % ops.size()];
    add(graph, op, twice ? std::vector{value, value} : std::vector{value}, next);
    value = next;
  }
}

NamedTensors outputs_of(const ::onnx::ModelProto& proto, std::vector<float> x, bool fuse = true) {
  ProtoFile file("g (float[1] x) => (float[1] y) { y = Neg(x) }");
  file.model() = proto;
  CompileOptions options;
  options.fuse = fuse;
  Session session(compile(Model::load(file.path()), options));
  Tensor input(DType::Float32, {static_cast<int64_t>(x.size())});
  std::copy(x.begin(), x.end(), input.as<float>());
  return session.run({{"x", input}});
}

std::vector<float> result_of(const ::onnx::ModelProto& proto, std::vector<float> x,
                             bool fuse = true) {
  const Tensor y = outputs_of(proto, std::move(x), fuse).at("y");
  return {y.as<float>(), y.as<float>() + y.size()};
}

TEST(Wide, NodesOfManyInputs) {
  const std::pair<const char*, std::vector<float>> cases[] = {
      {"Sum", {kWide, -2 * kWide}}, {"Mean", {1, -2}}, {"Max", {1, -2}}, {"Min", {1, -2}}};
  for (const auto& [op, expected] : cases) {
    const auto model = model_of(2, [&, op = op](::onnx::GraphProto& graph) {
      add(graph, op, std::vector<std::string>(kWide, "x"), "y");
    });
    EXPECT_EQ(result_of(model, {1, -2}), expected) << op;
  }
}

TEST(Wide, ConcatOfManyInputs) {
  const auto model = model_of(2, [](::onnx::GraphProto& graph) {
    std::vector<std::string> inputs(kWide, "x");
    for (size_t i = 0; i < inputs.size(); i += 3) inputs[i] = "n";
    add(graph, "Neg", {"x"}, "n");
    set(add(graph, "Concat", inputs, "y"), "axis", -1);
  });
  const std::vector<float> y = result_of(model, {1, 2});
  ASSERT_EQ(y.size(), 2u * kWide);
  for (size_t i = 0; i < y.size(); ++i) {
    const float sign = i / 2 % 3 == 0 ? -1.0f : 1.0f;
    ASSERT_EQ(y[i], sign * static_cast<float>(i % 2 + 1)) << i;
  }
}

TEST(Wide, SplitOfManyOutputs) {
  const auto model = model_of(
      kLong,
      [](::onnx::GraphProto& graph) {
        ::onnx::NodeProto& node = add(graph, "Split", {"x"}, "");
        for (int i = 0; i < kLong; ++i) node.add_output("y" + std::to_string(i));
        set(node, "axis", 0);
      },
      kLong);
  std::vector<float> x(kLong);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const NamedTensors y = outputs_of(model, x);
  for (int i = 0; i < kLong; i += 111) {
    ASSERT_EQ(*y.at("y" + std::to_string(i)).as<float>(), static_cast<float>(i));
  }
}

// Before and behind a softmax, and alone.
TEST(Long, ChainsOfFunctions) {
  const std::vector<std::string> ops{"Sin", "Tanh", "Atan", "Cos", "Sigmoid", "Softsign"};
  for (const bool softmax : {false, true}) {
    const auto model = model_of(4, [&](::onnx::GraphProto& graph) {
      add_chain(graph, ops, kLong, "x", "a");
      if (softmax) set(add(graph, "Softmax", {"a"}, "b"), "axis", -1);
      add_chain(graph, ops, kLong, softmax ? "b" : "a", "y");
    });
    const auto fused = result_of(model, {1, 2, 3, 4});
    const auto plain = result_of(model, {1, 2, 3, 4}, false);
    for (size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], plain[i], 1e-5) << softmax;
  }
}

// Shape arithmetic nests as deep as the graph is long.
TEST(Long, ChainsOverSizes) {
  const auto model = model_of(4, [](::onnx::GraphProto& graph) {
    add(graph, "Shape", {"x"}, "s");
    set(add(graph, "Cast", {"s"}, "f"), "to", ::onnx::TensorProto::FLOAT);
    add_chain(graph, {"Sin", "Tanh"}, kLong, "f", "a");
    add(graph, "Mul", {"x", "a"}, "y");
  });
  for (const float y : result_of(model, {1, 2, 3, 4})) EXPECT_TRUE(std::isfinite(y));
}

TEST(Shared, DoublingIntoReductions) {
  for (const std::string op : {"Add", "Mul", "Max"}) {
    for (const std::string reduction : {"ReduceSum", "ReduceMax", "Softmax", "LogSoftmax"}) {
      const auto model = model_of(4, [&](::onnx::GraphProto& graph) {
        add_chain(graph, {op}, 64, "x", "a", true);
        add(graph, reduction, {"a"}, "y");
      });
      const auto fused = result_of(model, {0, 1, 1, 0});
      const auto plain = result_of(model, {0, 1, 1, 0}, false);
      ASSERT_EQ(fused.size(), plain.size());
      for (size_t i = 0; i < fused.size(); ++i) {
        EXPECT_FLOAT_EQ(fused[i], plain[i]) << op << " " << reduction;
      }
    }
  }
}

// The deviation from a maximum, doubled: x and the earlier result meet in every sum.
TEST(Shared, DoublingWhatDependsOnAResult) {
  for (const std::string op : {"Add", "Mul"}) {
    const auto model = model_of(4, [&](::onnx::GraphProto& graph) {
      add(graph, "ReduceMax", {"x"}, "m");
      add(graph, "Sub", {"x", "m"}, "d");
      add_chain(graph, {op}, 20, "d", "a", true);
      set(add(graph, "ReduceSum", {"a"}, "y"), "keepdims", 1);
    });
    const auto fused = result_of(model, {0, 1, 0.5f, 0.25f});
    const auto plain = result_of(model, {0, 1, 0.5f, 0.25f}, false);
    EXPECT_NEAR(fused[0], plain[0], 1e-3 * std::abs(plain[0])) << op;
  }
}

// Each reduction uses the results of the two before it.
TEST(Shared, ResultsOfResults) {
  const auto model = model_of(4, [](::onnx::GraphProto& graph) {
    add(graph, "ReduceSum", {"x"}, "s0");
    add(graph, "ReduceMax", {"x"}, "s1");
    for (int i = 2; i < 60; ++i) {
      const std::string n = std::to_string(i);
      add(graph, "Mul", {"x", "s" + std::to_string(i - 1)}, "p" + n);
      add(graph, "Add", {"p" + n, "s" + std::to_string(i - 2)}, "q" + n);
      add(graph, "ReduceMean", {"q" + n}, "s" + n);
    }
    add(graph, "Mul", {"x", "s59"}, "y");
  });
  const auto fused = result_of(model, {0, 0.5f, 0.75f, 1});
  const auto plain = result_of(model, {0, 0.5f, 0.75f, 1}, false);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(fused[i], plain[i], 1e-4 * std::abs(plain[i]));
}

}  // namespace
}  // namespace redfuser
