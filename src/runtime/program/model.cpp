#include "onnx/import/import.h"
#include "onnx/support/supported_nodes.h"
#include "redfuser/redfuser.h"
#include "redfuser/support.h"

namespace redfuser {

Model Model::load(const std::string& path, const LoadOptions& options) {
  return Model(onnx::load_model(path, onnx::UnsupportedOperators::Refused, options));
}

Model Model::from_bytes(std::string_view bytes, const std::string& name,
                        const LoadOptions& options) {
  return Model(onnx::load_model(bytes, name, options));
}

NodeSupport supported_nodes(std::string_view bytes, const std::string& name,
                            const NamedTensors& weights) {
  return onnx::supported_nodes(bytes, name, weights);
}

Model Model::load_to_save(const std::string& path) {
  Model model;
  model.impl_ = onnx::load_model(path, onnx::UnsupportedOperators::Kept);
  return model;
}

Model Model::parse(const std::string& text) {
  Model model;
  model.impl_ = onnx::parse_model(text);
  return model;
}

const std::vector<ValueInfo>& Model::inputs() const { return impl_->inputs; }

const std::vector<ValueInfo>& Model::outputs() const { return impl_->outputs; }

const std::vector<ValueInfo>& Model::overridable() const { return impl_->overridable; }

Model Model::with_inputs(const std::vector<std::string>& names) const {
  if (names.empty()) return *this;
  return Model(onnx::with_inputs(*impl_, names));
}

std::vector<std::string> Model::deciding_inputs(const NamedTensors& inputs) const {
  return onnx::short_inputs(onnx::deciding_inputs(*impl_), inputs);
}

Model Model::with_values(const NamedTensors& values) const {
  if (values.empty()) return *this;
  return Model(onnx::with_values(*impl_, values));
}

const std::map<std::string, int>& Model::operator_counts() const { return impl_->operator_counts; }

}  // namespace redfuser
