// Sparse tensors of files are read as dense ones, wherever a file may have them.
#include <gtest/gtest.h>

#include <random>

#include "onnx/import/import.h"
#include "onnx/proto/model_file.h"
#include "onnx/proto/tensor_proto.h"
#include "redfuser/tensor.h"
#include "support/proto_file.h"

namespace redfuser {
namespace {

::onnx::TensorProto list_of(const std::string& name, const Dims& dims,
                            const std::vector<int64_t>& numbers) {
  Tensor tensor(DType::Int64, dims);
  std::copy(numbers.begin(), numbers.end(), tensor.as<int64_t>());
  return onnx::to_proto(name, tensor);
}

// The sparse tensor of `dense`, by one index per element or by one per dimension.
::onnx::SparseTensorProto sparse_of(const std::string& name, const Tensor& dense, bool linear) {
  std::vector<int64_t> kept, indices;
  for (int64_t at = 0; at < dense.size(); ++at) {
    if (dense.as<float>()[at] == 0) continue;
    kept.push_back(at);
    std::vector<int64_t> place;
    int64_t rest = at;
    for (size_t axis = dense.dims().size(); axis-- > 0; rest /= dense.dims()[axis]) {
      place.insert(place.begin(), rest % dense.dims()[axis]);
    }
    if (linear) place = {at};
    indices.insert(indices.end(), place.begin(), place.end());
  }
  const auto count = static_cast<int64_t>(kept.size());
  Tensor values(DType::Float32, {count});
  for (int64_t k = 0; k < count; ++k) {
    values.as<float>()[k] = dense.as<float>()[kept[static_cast<size_t>(k)]];
  }
  ::onnx::SparseTensorProto sparse;
  for (const int64_t dim : dense.dims()) sparse.add_dims(dim);
  *sparse.mutable_values() = onnx::to_proto(name, values);
  const Dims shape = linear ? Dims{count} : Dims{count, static_cast<int64_t>(dense.dims().size())};
  *sparse.mutable_indices() = list_of(name + "_at", shape, indices);
  return sparse;
}

void expect_value(const ::onnx::TensorProto& read, const Tensor& dense) {
  const Tensor tensor = onnx::to_tensor(read, nullptr, nullptr, "test");
  ASSERT_EQ(tensor.dims(), dense.dims());
  for (int64_t at = 0; at < dense.size(); ++at) {
    EXPECT_EQ(tensor.as<float>()[at], dense.as<float>()[at]) << at;
  }
}

TEST(SparseTensors, AreDenseWhereverTheyStand) {
  std::mt19937 random(7);
  for (const Dims& dims : {Dims{6}, Dims{3, 4}, Dims{2, 3, 2}, Dims{0, 3}, Dims{1, 1}}) {
    for (const bool linear : {true, false}) {
      Tensor dense(DType::Float32, dims);
      for (int64_t at = 0; at < dense.size(); ++at) {
        dense.as<float>()[at] = random() % 3 == 0 ? static_cast<float>(1 + random() % 9) : 0;
      }
      ProtoFile file(
          "g (bool c) => (y) { y = If(c) <then_branch = t () => (w) {}, else_branch = e ()"
          " => (v) { v = Constant<value_float = 0.0>() }> }",
          "<domain: \"f\", opset_import: [\"\" : 20]> k () => (r) "
          "{ r = Constant<value_float = 0.0>() }");
      auto make_sparse = [&](::onnx::NodeProto& constant) {
        ::onnx::AttributeProto& attribute = *constant.mutable_attribute(0);
        attribute.Clear();
        attribute.set_name("sparse_value");
        attribute.set_type(::onnx::AttributeProto::SPARSE_TENSOR);
        *attribute.mutable_sparse_tensor() = sparse_of("", dense, linear);
      };
      auto branch = [](::onnx::GraphProto& graph, int which) {
        return graph.mutable_node(0)->mutable_attribute(which)->mutable_g();
      };
      *branch(file.graph(), 0)->add_sparse_initializer() = sparse_of("w", dense, linear);
      make_sparse(*branch(file.graph(), 1)->mutable_node(0));
      make_sparse(*file.model().mutable_functions(0)->mutable_node(0));
      *file.graph().add_sparse_initializer() = sparse_of("u", dense, linear);

      const auto read = onnx::read_model_proto(file.path());
      ::onnx::GraphProto& graph = *read->mutable_graph();
      EXPECT_EQ(graph.initializer(0).name(), "u");
      expect_value(graph.initializer(0), dense);
      EXPECT_EQ(branch(graph, 0)->initializer(0).name(), "w");
      expect_value(branch(graph, 0)->initializer(0), dense);
      for (const auto& node : {branch(graph, 1)->node(0), read->functions(0).node(0)}) {
        EXPECT_EQ(node.attribute(0).name(), "value");
        expect_value(node.attribute(0).t(), dense);
      }
    }
  }
}

struct Refusal {
  const char* name;
  Dims dims;
  std::vector<int64_t> indices;
  Dims shape;  // of the indices
  const char* part;
};

const Refusal kRefusals[] = {
    {"OutOfRange", {2, 3}, {0, 6}, {2}, "index 6 of entry 1 is out of range [0, 6)"},
    {"Negative", {2, 3}, {-1, 4}, {2}, "index -1 of entry 0"},
    {"OutOfItsDimension",
     {2, 3},
     {0, 0, 0, 3},
     {2, 2},
     "index 3 of entry 1 is out of range [0, 3)"},
    {"NotAscending", {2, 3}, {4, 1}, {2}, "entry 1 is not behind the one before it"},
    {"Twice", {2, 3}, {4, 4}, {2}, "entry 1 is not behind the one before it"},
    {"TooFewIndices", {2, 3}, {4}, {1}, "int64[2]"},
    {"OtherRank", {2, 3}, {0, 0, 0, 0, 0, 1}, {2, 3}, "int64[2,2]"},
    {"Overflow", {1LL << 40, 1LL << 40}, {0, 1}, {2}, "its size overflows"},
    {"NegativeSize", {-2, 3}, {0, 1}, {2}, "negative dimension -2"},
};

TEST(SparseTensors, AreRefusedByName) {
  for (const Refusal& refusal : kRefusals) {
    ProtoFile file("g (float[2, 3] x) => (y) { y = Add(x, w) }");
    ::onnx::SparseTensorProto& sparse = *file.graph().add_sparse_initializer();
    for (const int64_t dim : refusal.dims) sparse.add_dims(dim);
    *sparse.mutable_values() = onnx::to_proto("w", Tensor(DType::Float32, {2}));
    *sparse.mutable_indices() = list_of("", refusal.shape, refusal.indices);
    try {
      onnx::load_model(file.path());
      ADD_FAILURE() << refusal.name << ": it was loaded";
    } catch (const UserError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find("sparse initializer \"w\""), std::string::npos) << message;
      EXPECT_NE(message.find(refusal.part), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace redfuser
