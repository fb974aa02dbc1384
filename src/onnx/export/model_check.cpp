#include "onnx/export/model_check.h"

#include <onnx/checker.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "onnx/functions/functions.h"

namespace redfuser::onnx {
namespace {

// The nodes of ONNX's domain that the standard does not have are of a domain that the checker
// passes over, while this lives. Other programs have more operators in ONNX's domain.
class Disguise {
 public:
  explicit Disguise(::onnx::ModelProto& model) {
    disguise(*model.mutable_graph()->mutable_node(), *model.mutable_opset_import(),
             opsets_of(model));
    for (auto& function : *model.mutable_functions()) {
      disguise(*function.mutable_node(), *function.mutable_opset_import(), opsets_of(function));
      // A function's operator sets are the model's.
      if (!nodes_.empty()) import(*model.mutable_opset_import());
    }
  }
  Disguise(const Disguise&) = delete;
  Disguise& operator=(const Disguise&) = delete;
  ~Disguise() {
    for (::onnx::NodeProto* node : nodes_) node->clear_domain();
    for (Imports* imports : imports_) imports->RemoveLast();
  }

 private:
  static constexpr const char* kOther = "ai.redfuser.unchecked";

  using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;
  using Imports = google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>;

  void disguise(Nodes& nodes, Imports& imports, const Opsets& opsets) {
    const auto standard = opsets.find("");
    const size_t before = nodes_.size();
    if (standard != opsets.end()) disguise(nodes, static_cast<int>(standard->second));
    if (nodes_.size() > before) import(imports);
  }

  void disguise(Nodes& nodes, int opset) {
    for (::onnx::NodeProto& node : nodes) {
      for (auto& attribute : *node.mutable_attribute()) {
        if (attribute.has_g()) disguise(*attribute.mutable_g()->mutable_node(), opset);
      }
      const bool standard = ::onnx::OpSchemaRegistry::Schema(node.op_type(), opset, "") != nullptr;
      if (!node.domain().empty() || standard) continue;
      nodes_.push_back(&node);
      node.set_domain(kOther);
    }
  }

  void import(Imports& imports) {
    if (std::find(imports_.begin(), imports_.end(), &imports) != imports_.end()) return;
    ::onnx::OperatorSetIdProto& other = *imports.Add();
    other.set_domain(kOther);
    other.set_version(1);
    imports_.push_back(&imports);
  }

  std::vector<::onnx::NodeProto*> nodes_;
  std::vector<Imports*> imports_;
};

}  // namespace

// The checker only needs to know that the initializers' names exist; as inputs they are cheap.
void check_model(OutputModel& model, const std::string& path) {
  ::onnx::GraphProto& graph = *model.proto.mutable_graph();
  const int inputs = graph.input_size();
  std::unordered_set<std::string> names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& [name, tensor] : model.initializers) {
    if (names.count(name)) continue;
    ::onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(name);
    auto* type = input.mutable_type()->mutable_tensor_type();
    type->set_elem_type(static_cast<int>(tensor.dtype()));
    auto* shape = type->mutable_shape();
    for (const int64_t dim : tensor.dims()) shape->add_dim()->set_dim_value(dim);
  }
  const Disguise disguise(model.proto);
  try {
    ::onnx::checker::check_model(model.proto);
  } catch (const std::exception& error) {
    std::string message = error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    user_error("{}: cannot be written: ONNX's checker refuses it: {}", path, message);
  }
  while (graph.input_size() > inputs) graph.mutable_input()->RemoveLast();
}

}  // namespace redfuser::onnx
