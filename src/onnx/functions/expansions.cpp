#include "onnx/functions/expansions.h"

#include <fmt/format.h>
#include <onnx/defs/parser.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "onnx/functions/expansion_call.h"
#include "onnx/functions/functions.h"

namespace redfuser::onnx {
namespace {

const std::map<std::string, ExpansionText>& texts() {
  static const std::map<std::string, ExpansionText> table = {
      {"ai.onnx.ml.FeatureVectorizer", learning_feature_vectorizer},
      {"ai.onnx.ml.Imputer", learning_imputer},
      {"ai.onnx.ml.LinearClassifier", learning_linear_classifier},
      {"ai.onnx.ml.LinearRegressor", learning_linear_regressor},
      {"ai.onnx.ml.Normalizer", learning_normalizer},
      {"ai.onnx.ml.OneHotEncoder", learning_one_hot_encoder},
      {"ai.onnx.ml.SVMRegressor", learning_svm_regressor},
      {"ai.onnx.ml.Scaler", learning_scaler},
      {"ai.onnx.ml.ZipMap", learning_zip_map},
      {"ai.onnx.preview.training.Adagrad", training_adagrad},
      {"ai.onnx.preview.training.Adam", training_adam},
      {"ai.onnx.preview.training.Momentum", training_momentum},
      {"com.microsoft.Attention", microsoft_attention},
      {"com.microsoft.BiasAdd", microsoft_bias_add},
      {"com.microsoft.BiasDropout", microsoft_bias_dropout},
      {"com.microsoft.BiasGelu", microsoft_bias_gelu},
      {"com.microsoft.BiasSplitGelu", microsoft_bias_split_gelu},
      {"com.microsoft.BranchwiseRMSNorm", microsoft_branchwise_rms_norm},
      {"com.microsoft.CDist", microsoft_distances},
      {"com.microsoft.CausalConvWithState", microsoft_causal_convolution},
      {"com.microsoft.DequantizeLinear", microsoft_dequantize},
      {"com.microsoft.DynamicQuantizeMatMul", microsoft_dynamic_quantize_matmul},
      {"com.microsoft.EmbedLayerNormalization", microsoft_embed_layer_norm},
      {"com.microsoft.ExpandDims", microsoft_expand_dims},
      {"com.microsoft.FastGelu", microsoft_fast_gelu},
      {"com.microsoft.FusedConv", microsoft_fused_conv},
      {"com.microsoft.FusedGemm", microsoft_fused_gemm},
      {"com.microsoft.FusedMatMul", microsoft_fused_matmul},
      {"com.microsoft.FusedMatMulActivation", microsoft_fused_matmul},
      {"com.microsoft.GatedAdd", microsoft_gated_add},
      {"com.microsoft.GatedRMSNorm", microsoft_gated_rms_norm},
      {"com.microsoft.GatherBlockQuantized", microsoft_gather_block_quantized},
      {"com.microsoft.GatherND", microsoft_gather_nd},
      {"com.microsoft.Gelu", microsoft_gelu},
      {"com.microsoft.GridSample", microsoft_grid_sample},
      {"com.microsoft.GroupNorm", microsoft_group_norm},
      {"com.microsoft.GroupQueryAttention", microsoft_grouped_attention},
      {"com.microsoft.Inverse", microsoft_inverse},
      {"com.microsoft.LinearAttention", microsoft_linear_attention},
      {"com.microsoft.LinearAttentionGate", microsoft_linear_attention_gate},
      {"com.microsoft.MRotaryEmbedding", microsoft_multimodal_rotary},
      {"com.microsoft.MatMulBnb4", microsoft_matmul_bnb4},
      {"com.microsoft.MatMulIntegerToFloat", microsoft_matmul_integer_to_float},
      {"com.microsoft.MatMulNBits", microsoft_matmul_nbits},
      {"com.microsoft.MoE", microsoft_moe},
      {"com.microsoft.MultiHeadAttention", microsoft_multi_head_attention},
      {"com.microsoft.NhwcConv", microsoft_nhwc_conv},
      {"com.microsoft.NhwcMaxPool", microsoft_nhwc_max_pool},
      {"com.microsoft.Pad", microsoft_pad},
      {"com.microsoft.QAttention", microsoft_quantized_attention},
      {"com.microsoft.QEmbedLayerNormalization", microsoft_quantized_embed_layer_norm},
      {"com.microsoft.QGemm", microsoft_quantized_gemm},
      {"com.microsoft.QLinearAdd", microsoft_quantized_add},
      {"com.microsoft.QLinearAveragePool", microsoft_quantized_pool},
      {"com.microsoft.QLinearConcat", microsoft_quantized_concat},
      {"com.microsoft.QLinearConv", microsoft_quantized_conv},
      {"com.microsoft.QLinearGlobalAveragePool", microsoft_quantized_global_pool},
      {"com.microsoft.QLinearLeakyRelu", microsoft_quantized_leaky_relu},
      {"com.microsoft.QLinearMul", microsoft_quantized_mul},
      {"com.microsoft.QLinearSigmoid", microsoft_quantized_sigmoid},
      {"com.microsoft.QLinearSoftmax", microsoft_quantized_softmax},
      {"com.microsoft.QLinearWhere", microsoft_quantized_where},
      {"com.microsoft.QMoE", microsoft_quantized_moe},
      {"com.microsoft.QuantizeLinear", microsoft_quantize},
      {"com.microsoft.QuickGelu", microsoft_quick_gelu},
      {"com.microsoft.Range", microsoft_range},
      {"com.microsoft.RotaryEmbedding", microsoft_rotary_embedding},
      {"com.microsoft.ScaledSiLU", microsoft_scaled_silu},
      {"com.microsoft.SkipGroupNorm", microsoft_skip_group_norm},
      {"com.microsoft.SkipLayerNormalization", microsoft_skip_layer_norm},
      {"com.microsoft.SkipSimplifiedLayerNormalization", microsoft_skip_simplified_layer_norm},
      {"com.microsoft.TransposeMatMul", microsoft_fused_matmul},
      {"com.microsoft.Trilu", microsoft_trilu},
      {"com.microsoft.Unique", microsoft_unique},
      {"AffineGrid", affine_grid},
      {"GlobalLpPool", global_lp_pool},
      {"LayerNormalization", early_layer_norm},
      {"QLinearConv", quantized_conv},
      {"SimplifiedLayerNormalization", simplified_layer_norm},
      {"TensorScatter", tensor_scatter},
  };
  return table;
}

constexpr int kOpset = 23;  // of bodies whose operators it has

// The first opset from kOpset on that has the operators of all nodes: runtimes refuse models of
// opsets that are newer than they are.
template <typename Nodes>
int opset_of(const Nodes& nodes) {
  int opset = kOpset;
  for (const ::onnx::NodeProto& node : nodes) {
    const std::string& op = node.op_type();
    const bool standard = node.domain().empty();
    if (standard && ::onnx::OpSchemaRegistry::Schema(op, kOpset, "") == nullptr) {
      const auto* schema = ::onnx::OpSchemaRegistry::Schema(op, "");
      RF_CHECK(schema != nullptr, "no operator {}", op);
      opset = std::max(opset, schema->SinceVersion());
    }
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) opset = std::max(opset, opset_of(attribute.g().node()));
    }
  }
  return opset;
}

}  // namespace

std::vector<std::string> own_expansion_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : texts()) names.push_back(name);
  return names;
}

bool has_own_expansion(const ::onnx::NodeProto& node) {
  return texts().count(qualified_name(node.domain(), node.op_type())) != 0;
}

bool replaces_standard_body(const ::onnx::NodeProto& node) {
  return qualified_name(node.domain(), node.op_type()) == "AffineGrid";
}

std::shared_ptr<const ::onnx::FunctionProto> own_expansion(
    const ::onnx::NodeProto& node, const std::vector<::onnx::TypeProto>& input_types,
    const std::string& where) {
  const ExpansionText write = texts().at(qualified_name(node.domain(), node.op_type()));
  const std::string body = write(ExpansionCall(node, input_types, where));
  if (body.empty()) return nullptr;
  const std::string text =
      fmt::format("<domain: \"own\", opset_import: [\"\" : {}]> Body {}", kOpset, body);
  auto function = std::make_shared<::onnx::FunctionProto>();
  const auto status = ::onnx::OnnxParser::Parse(*function, text.c_str());
  RF_CHECK(status.IsOK(), "{}: {}", node.op_type(), status.ErrorMessage());
  function->set_name(node.op_type());
  function->mutable_opset_import(0)->set_version(opset_of(function->node()));
  return function;
}

}  // namespace redfuser::onnx
