// The node properties that decide the form of an operator's own body, and the bodies by family.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace redfuser::onnx {

class ExpansionCall {
 public:
  // `where` names the node in errors.
  ExpansionCall(const ::onnx::NodeProto& node, const std::vector<::onnx::TypeProto>& types,
                std::string where)
      : node_(node), types_(types), where_(std::move(where)) {}

  // Throws UserError if the node has a form without a body; `form` says which.
  void refuse_if(bool unsupported, const std::string& form) const {
    if (unsupported) user_error("{}: {} is not supported", where_, form);
  }
  // The same for any input from `first` on.
  void refuse_inputs(int first, const std::string& form) const {
    for (int i = first; i < node_.input_size(); ++i) refuse_if(has(i), form);
  }

  bool has(int input) const {
    return input >= 0 && input < node_.input_size() && !node_.input(input).empty();
  }
  int input_count() const { return node_.input_size(); }
  bool has_output(int output) const {
    return output < node_.output_size() && !node_.output(output).empty();
  }
  // The element type (onnx.TensorProto.DataType) of an input, which must be present.
  int type(int input) const { return tensor(input).elem_type(); }
  // The size of an input's dimension; -1 if it is symbolic.
  int64_t size(int input, int dimension) const {
    if (!has(input) || rank(input) <= dimension) return -1;
    const auto& dim = tensor(input).shape().dim(dimension);
    return dim.has_dim_value() ? dim.dim_value() : -1;
  }
  int rank(int input) const { return tensor(input).shape().dim_size(); }
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
      if (attribute.name() == name) return checked(attribute.s());
    }
    return fallback;
  }
  std::vector<float> reals(const std::string& name) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return {attribute.floats().begin(), attribute.floats().end()};
    }
    return {};
  }
  std::vector<int64_t> integers(const std::string& name) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return {attribute.ints().begin(), attribute.ints().end()};
    }
    return {};
  }
  int64_t integer(const std::string& name, int64_t fallback) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == name) return attribute.i();
    }
    return fallback;
  }
  // The length of a list attribute; 0 if it is absent.
  int64_t length(const std::string& name) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() != name) continue;
      return attribute.floats_size() + attribute.ints_size() + attribute.strings_size();
    }
    return 0;
  }
  int64_t element(const std::string& list, int at) const {
    for (const auto& attribute : node_.attribute()) {
      if (attribute.name() == list) return attribute.ints(at);
    }
    return 0;
  }
  // Throws UserError for an invalid node.
  [[noreturn]] void fail(const std::string& message) const {
    user_error("{}: {}", where_, message);
  }
  // Throws NeedsValues: a size of an input decides the form, and only a run knows it.
  [[noreturn]] void wait_for(const std::string& size) const {
    needs_values("{}: {} decides its body, and only a run knows it", where_, size);
  }

 private:
  const ::onnx::TypeProto::Tensor& tensor(int input) const {
    refuse_if(!has(input), fmt::format("a node without its input {}", input));
    return types_.at(static_cast<size_t>(input)).tensor_type();
  }
  // Refuses texts with zero bytes, which would end the body.
  const std::string& checked(const std::string& text) const {
    refuse_if(text.find('\0') != std::string::npos, "a zero byte in a string");
    return text;
  }

  const ::onnx::NodeProto& node_;
  const std::vector<::onnx::TypeProto>& types_;
  std::string where_;
};

// A function in ONNX's text syntax, after its name: `<attributes> (inputs) => (outputs) {nodes}`;
// empty if a kernel computes the form. Throws UserError for unsupported forms.
using ExpansionText = std::string (*)(const ExpansionCall&);

// ai.onnx.ml: features of tables, and linear models. Results that ONNX leaves undefined (one score
// for two classes, a transform of a single score) follow ONNX Runtime.
std::string learning_feature_vectorizer(const ExpansionCall& call);
std::string learning_imputer(const ExpansionCall& call);
std::string learning_linear_classifier(const ExpansionCall& call);
std::string learning_linear_regressor(const ExpansionCall& call);
std::string learning_normalizer(const ExpansionCall& call);
std::string learning_one_hot_encoder(const ExpansionCall& call);
std::string learning_scaler(const ExpansionCall& call);
std::string learning_svm_regressor(const ExpansionCall& call);
std::string learning_zip_map(const ExpansionCall& call);
std::string microsoft_attention(const ExpansionCall& call);
std::string microsoft_bias_add(const ExpansionCall& call);
std::string microsoft_bias_dropout(const ExpansionCall& call);
std::string microsoft_bias_gelu(const ExpansionCall& call);
std::string microsoft_bias_split_gelu(const ExpansionCall& call);
std::string microsoft_branchwise_rms_norm(const ExpansionCall& call);
std::string microsoft_causal_convolution(const ExpansionCall& call);
std::string microsoft_dequantize(const ExpansionCall& call);
std::string microsoft_distances(const ExpansionCall& call);
std::string microsoft_dynamic_quantize_matmul(const ExpansionCall& call);
std::string microsoft_embed_layer_norm(const ExpansionCall& call);
std::string microsoft_expand_dims(const ExpansionCall& call);
std::string microsoft_fast_gelu(const ExpansionCall& call);
std::string microsoft_fused_conv(const ExpansionCall& call);
std::string microsoft_fused_gemm(const ExpansionCall& call);
std::string microsoft_fused_matmul(const ExpansionCall& call);
std::string microsoft_gated_add(const ExpansionCall& call);
std::string microsoft_gated_rms_norm(const ExpansionCall& call);
std::string microsoft_gather_block_quantized(const ExpansionCall& call);
std::string microsoft_gather_nd(const ExpansionCall& call);
std::string microsoft_gelu(const ExpansionCall& call);
std::string microsoft_grid_sample(const ExpansionCall& call);
std::string microsoft_group_norm(const ExpansionCall& call);
std::string microsoft_grouped_attention(const ExpansionCall& call);
std::string microsoft_inverse(const ExpansionCall& call);
std::string microsoft_linear_attention(const ExpansionCall& call);
std::string microsoft_linear_attention_gate(const ExpansionCall& call);
std::string microsoft_matmul_bnb4(const ExpansionCall& call);
std::string microsoft_matmul_integer_to_float(const ExpansionCall& call);
std::string microsoft_matmul_nbits(const ExpansionCall& call);
std::string microsoft_moe(const ExpansionCall& call);
std::string microsoft_multi_head_attention(const ExpansionCall& call);
std::string microsoft_multimodal_rotary(const ExpansionCall& call);
std::string microsoft_nhwc_conv(const ExpansionCall& call);
std::string microsoft_nhwc_max_pool(const ExpansionCall& call);
std::string microsoft_pad(const ExpansionCall& call);
std::string microsoft_quantize(const ExpansionCall& call);
std::string microsoft_quantized_add(const ExpansionCall& call);
std::string microsoft_quantized_attention(const ExpansionCall& call);
std::string microsoft_quantized_concat(const ExpansionCall& call);
std::string microsoft_quantized_conv(const ExpansionCall& call);
std::string microsoft_quantized_embed_layer_norm(const ExpansionCall& call);
std::string microsoft_quantized_gemm(const ExpansionCall& call);
std::string microsoft_quantized_global_pool(const ExpansionCall& call);
std::string microsoft_quantized_leaky_relu(const ExpansionCall& call);
std::string microsoft_quantized_moe(const ExpansionCall& call);
std::string microsoft_quantized_mul(const ExpansionCall& call);
std::string microsoft_quantized_pool(const ExpansionCall& call);
std::string microsoft_quantized_sigmoid(const ExpansionCall& call);
std::string microsoft_quantized_softmax(const ExpansionCall& call);
std::string microsoft_quantized_where(const ExpansionCall& call);
std::string microsoft_quick_gelu(const ExpansionCall& call);
std::string microsoft_range(const ExpansionCall& call);
std::string microsoft_rotary_embedding(const ExpansionCall& call);
std::string microsoft_scaled_silu(const ExpansionCall& call);
std::string microsoft_skip_group_norm(const ExpansionCall& call);
std::string microsoft_skip_layer_norm(const ExpansionCall& call);
std::string microsoft_skip_simplified_layer_norm(const ExpansionCall& call);
std::string microsoft_trilu(const ExpansionCall& call);
std::string microsoft_unique(const ExpansionCall& call);
std::string affine_grid(const ExpansionCall& call);
std::string global_lp_pool(const ExpansionCall& call);
std::string quantized_conv(const ExpansionCall& call);
std::string tensor_scatter(const ExpansionCall& call);
// ai.onnx names that files use outside the opsets that define them.
std::string early_layer_norm(const ExpansionCall& call);
std::string simplified_layer_norm(const ExpansionCall& call);
// ai.onnx.preview.training: one step of an optimizer, for any number of tensors.
std::string training_adagrad(const ExpansionCall& call);
std::string training_adam(const ExpansionCall& call);
std::string training_momentum(const ExpansionCall& call);

}  // namespace redfuser::onnx
