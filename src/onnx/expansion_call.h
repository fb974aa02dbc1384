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
  bool has_output(int output) const {
    return output < node_.output_size() && !node_.output(output).empty();
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
std::string microsoft_multi_head_attention(const ExpansionCall& call);
std::string microsoft_rotary_embedding(const ExpansionCall& call);

}  // namespace redfuser
