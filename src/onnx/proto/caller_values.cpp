#include "onnx/proto/caller_values.h"

#include <onnx/onnx_pb.h>

#include <map>
#include <set>

#include "base/error.h"
#include "onnx/proto/external_data.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

using Sizes = std::map<std::string, int64_t>;

std::string location_of(const ::onnx::TensorProto& tensor) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") return entry.value();
  }
  return "";
}

void check_sizes(const Sizes& sizes, const std::string& path) {
  for (const auto& [name, size] : sizes) {
    if (size < 0) user_error("{}: the size given for \"{}\" is {}", path, name, size);
  }
}

// -1 where there is none.
int64_t size_of_dimension(const ::onnx::TensorShapeProto::Dimension& dim,
                          const LoadOptions& options) {
  if (dim.has_dim_value() && dim.dim_value() >= 0) return -1;
  const auto named = options.sizes.find(dim.dim_param());
  if (!dim.dim_param().empty() && named != options.sizes.end()) return named->second;
  const auto denoted = options.denoted_sizes.find(dim.denotation());
  if (!dim.denotation().empty() && denoted != options.denoted_sizes.end()) return denoted->second;
  return -1;
}

}  // namespace

NamedTensors given_weights(const ::onnx::ModelProto& model, const std::string& path,
                           const LoadOptions& options) {
  std::set<std::string> names, locations;
  NamedTensors weights = options.weights;
  ExternalData external(path, options.files);
  for (const auto& tensor : model.graph().initializer()) {
    names.insert(tensor.name());
    if (tensor.data_location() != ::onnx::TensorProto::EXTERNAL) continue;
    const std::string location = location_of(tensor);
    locations.insert(location);
    if (weights.count(tensor.name()) > 0 || options.files.count(location) == 0) continue;
    weights[tensor.name()] = to_tensor(tensor, nullptr, &external, path);
  }
  for (const auto& [name, tensor] : options.weights) {
    if (names.count(name) == 0) {
      user_error("{}: a weight is given for \"{}\", which is not an initializer", path, name);
    }
    if (!tensor.defined()) user_error("{}: the weight given for \"{}\" is empty", path, name);
  }
  for (const auto& [location, file] : options.files) {
    if (locations.count(location) > 0) continue;
    user_error("{}: a file is given for \"{}\", where no initializer has its data", path, location);
  }
  return weights;
}

void set_sizes(::onnx::ModelProto& model, const std::string& path, const LoadOptions& options) {
  check_sizes(options.sizes, path);
  check_sizes(options.denoted_sizes, path);
  if (options.sizes.empty() && options.denoted_sizes.empty()) return;
  for (auto& input : *model.mutable_graph()->mutable_input()) {
    if (!input.type().tensor_type().has_shape()) continue;
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      const int64_t size = size_of_dimension(dim, options);
      if (size >= 0) dim.set_dim_value(size);
    }
  }
}

}  // namespace redfuser::onnx
