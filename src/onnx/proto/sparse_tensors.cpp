#include "onnx/proto/sparse_tensors.h"

#include <onnx/onnx_pb.h>

#include <cstring>

#include "base/error.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

// The position of entry `k` in the dense tensor, from one number or from one per dimension.
int64_t position_of(const Tensor& indices, int64_t k, const Dims& dims, const std::string& here) {
  const auto* index = indices.as<int64_t>();
  const bool linear = indices.dims().size() == 1;
  const auto check = [&](int64_t at, int64_t size) {
    if (at < 0 || at >= size) {
      user_error("{}: index {} of entry {} is out of range [0, {})", here, at, k, size);
    }
  };
  if (linear) {
    check(index[k], element_count(dims));
    return index[k];
  }
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t position = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t size = dims[static_cast<size_t>(axis)], at = index[k * rank + axis];
    check(at, size);
    position = position * size + at;
  }
  return position;
}

void check_parts(const Tensor& values, const Tensor& indices, const Dims& dims,
                 const std::string& here) {
  if (values.dims().size() != 1 || values.dtype() == DType::String) {
    user_error("{}: its values are {}, but must be a list of numbers", here, describe(values));
  }
  const int64_t count = values.size();
  const bool fits = indices.dims() == Dims{count} ||
                    indices.dims() == Dims{count, static_cast<int64_t>(dims.size())};
  if (indices.dtype() != DType::Int64 || !fits) {
    user_error("{}: its indices are {}, but must be int64[{}] or int64[{},{}]", here,
               describe(indices), count, count, dims.size());
  }
}

Tensor dense(const ::onnx::SparseTensorProto& sparse, const std::string& here) {
  const Tensor values = to_tensor(sparse.values(), nullptr, nullptr, here);
  const Tensor indices = to_tensor(sparse.indices(), nullptr, nullptr, here);
  const Dims dims = checked_dims({sparse.dims().begin(), sparse.dims().end()}, values.dtype(),
                                 sparse.values().name(), here);
  check_parts(values, indices, dims, here);
  Tensor result(values.dtype(), dims);
  const size_t width = size_of(values.dtype());
  auto* target = static_cast<char*>(result.mutable_data());
  const auto* source = static_cast<const char*>(values.data());
  if (result.bytes() != 0) std::memset(target, 0, result.bytes());
  int64_t before = -1;
  for (int64_t k = 0; k < values.size(); ++k) {
    const int64_t position = position_of(indices, k, dims, here);
    if (position <= before) user_error("{}: entry {} is not behind the one before it", here, k);
    std::memcpy(target + static_cast<size_t>(position) * width,
                source + static_cast<size_t>(k) * width, width);
    before = position;
  }
  return result;
}

void make_dense(::onnx::GraphProto& graph, const std::string& where);

void make_dense(::onnx::NodeProto& node, const std::string& where) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (attribute.has_g()) make_dense(*attribute.mutable_g(), where);
    const bool constant = node.op_type() == "Constant" && node.domain().empty();
    if (!constant || attribute.name() != "sparse_value" || !attribute.has_sparse_tensor()) continue;
    const std::string& name =
        node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
    const Tensor tensor =
        dense(attribute.sparse_tensor(), fmt::format("{}: node \"{}\": sparse_value", where, name));
    attribute.clear_sparse_tensor();
    attribute.set_name("value");
    attribute.set_type(::onnx::AttributeProto::TENSOR);
    *attribute.mutable_t() = to_proto("", tensor);
  }
}

void make_dense(::onnx::GraphProto& graph, const std::string& where) {
  for (const auto& sparse : graph.sparse_initializer()) {
    const std::string& name = sparse.values().name();
    const std::string here = fmt::format("{}: sparse initializer \"{}\"", where, name);
    *graph.add_initializer() = to_proto(name, dense(sparse, here));
  }
  graph.clear_sparse_initializer();
  for (auto& node : *graph.mutable_node()) make_dense(node, where);
}

}  // namespace

void make_dense(::onnx::ModelProto& model, const std::string& where) {
  make_dense(*model.mutable_graph(), where);
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node()) make_dense(node, where);
  }
}

}  // namespace redfuser::onnx
