// What the form of an operator's own body depends on, and the bodies by family.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

namespace redfuser {

class ExpansionCall {
 public:
  ExpansionCall(const onnx::NodeProto& node, const std::vector<onnx::TypeProto>& types)
      : node_(node), types_(types) {}

  bool has(int input) const { return input < node_.input_size() && !node_.input(input).empty(); }
  int input_count() const { return node_.input_size(); }
  bool has_output(int output) const {
    return output < node_.output_size() && !node_.output(output).empty();
  }
  // The element type (onnx.TensorProto.DataType) of an input.
  int type(int input) const {
    return types_.at(static_cast<size_t>(input)).tensor_type().elem_type();
  }
  // The size of an input's dimension; -1 where it is open.
  int64_t size(int input, int dimension) const {
    if (!has(input) || rank(input) <= dimension) return -1;
    const auto& dim = types_.at(static_cast<size_t>(input)).tensor_type().shape().dim(dimension);
    return dim.has_dim_value() ? dim.dim_value() : -1;
  }
  int rank(int input) const {
    return types_.at(static_cast<size_t>(input)).tensor_type().shape().dim_size();
  }
  bool has_attribute(const std::string& name) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return true;
    }
    return false;
  }
  float real(const std::string& name, float fallback) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return attribute.f();
    }
    return fallback;
  }
  std::string text(const std::string& name, const std::string& fallback) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return attribute.s();
    }
    return fallback;
  }
  int64_t integer(const std::string& name, int64_t fallback) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return attribute.i();
    }
    return fallback;
  }

 private:
  const onnx::NodeProto& node_;
  const std::vector<onnx::TypeProto>& types_;
};

// A function in ONNX's text syntax, after its name: `<attributes> (inputs) => (outputs) {nodes}`;
// empty for a form that is not supported.
using ExpansionText = std::string (*)(const ExpansionCall&);

std::string microsoft_attention(const ExpansionCall& call);
std::string microsoft_embed_layer_norm(const ExpansionCall& call);
std::string microsoft_grouped_attention(const ExpansionCall& call);
std::string microsoft_matmul_nbits(const ExpansionCall& call);
std::string microsoft_moe(const ExpansionCall& call);
std::string microsoft_multi_head_attention(const ExpansionCall& call);
std::string microsoft_rotary_embedding(const ExpansionCall& call);
// ai.onnx.preview.training: one step of an optimizer, for any number of tensors.
std::string training_adagrad(const ExpansionCall& call);
std::string training_adam(const ExpansionCall& call);
std::string training_momentum(const ExpansionCall& call);

}  // namespace redfuser
