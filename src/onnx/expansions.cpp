#include "onnx/expansions.h"

#include <onnx/defs/parser.h>
#include <onnx/onnx_pb.h>

#include <map>
#include <string>

#include "base/error.h"
#include "onnx/expansion_call.h"
#include "onnx/functions.h"

namespace redfuser {
namespace {

std::string gelu(const ExpansionCall&) { return "(X) => (Y) { Y = Gelu(X) }"; }

std::string bias_gelu(const ExpansionCall&) {
  return "(A, B) => (C) { T = Add(A, B) C = Gelu(T) }";
}

std::string fast_gelu(const ExpansionCall& call) {
  return call.has(1) ? "(X, B) => (Y) { T = Add(X, B) Y = Gelu<approximate = \"tanh\">(T) }"
                     : "(X, B) => (Y) { Y = Gelu<approximate = \"tanh\">(X) }";
}

std::string quick_gelu(const ExpansionCall&) {
  return R"(<alpha: float = 1.702> (X) => (Y) {
    A = Constant<value_float: float = @alpha>()
    AX = CastLike(A, X)
    T = Mul(X, AX)
    S = Sigmoid(T)
    Y = Mul(X, S)
  })";
}

std::string fused_matmul(const ExpansionCall& call) {
  if (call.integer("transBatchA", 0) != 0 || call.integer("transBatchB", 0) != 0) return "";
  // The rank is open, so that Transpose cannot be used.
  const auto operand = [&](const char* name, const char* flag) {
    return call.integer(flag, 0) != 0
               ? fmt::format("{0}T = Einsum<equation = \"...ij->...ji\">({0})", name)
               : fmt::format("{0}T = Identity({0})", name);
  };
  return fmt::format(R"(<alpha: float = 1.0> (A, B) => (Y) {{
    {} {}
    P = MatMul(AT, BT)
    F = Constant<value_float: float = @alpha>()
    FP = CastLike(F, P)
    Y = Mul(P, FP)
  }})",
                     operand("A", "transA"), operand("B", "transB"));
}

// Root mean square over the last dimension, in fp32; also gives InvStdDev.
constexpr const char* kRms = R"(
    One = Constant<value_float = 1.0>()
    Eps = Constant<value_float: float = @epsilon>()
    Last = Constant<value_ints = [-1]>()
    XF = Cast<to = 1>(Sum)
    Sq = Mul(XF, XF)
    Mean = ReduceMean(Sq, Last)
    Shifted = Add(Mean, Eps)
    Std = Sqrt(Shifted)
    InvStdDev = Div(One, Std)
    NF = Mul(XF, InvStdDev)
    N = CastLike(NF, Sum)
    Y = Mul(N, Scale)
  )";

std::string simplified_layer_norm(const ExpansionCall& call) {
  if (call.integer("axis", -1) != -1) return "";
  return fmt::format(
      "<epsilon: float = 0.00001> (X, Scale) => (Y, InvStdDev) {{ Sum = Identity(X) {} }}", kRms);
}

// input + skip + bias, as both skip normalisations start.
std::string skip_sum(const ExpansionCall& call, int bias) {
  return call.has(bias) ? "S0 = Add(X, Skip) Sum = Add(S0, Bias)" : "Sum = Add(X, Skip)";
}

std::string skip_simplified_layer_norm(const ExpansionCall& call) {
  return fmt::format(
      "<epsilon: float = 0.000000000001> (X, Skip, Scale, Bias) => (Y, Unused, InvStdDev, Sum) "
      "{{ {} {} Unused = Identity(InvStdDev) }}",
      skip_sum(call, 3), kRms);
}

std::string skip_layer_norm(const ExpansionCall& call) {
  return fmt::format(
      "<epsilon: float = 0.000000000001> (X, Skip, Gamma, Beta, Bias) => (Y, Mean, InvStdDev, Sum) "
      "{{ {} Y, Mean, InvStdDev = LayerNormalization<axis = -1, epsilon: float = @epsilon>"
      "(Sum, Gamma{}) }}",
      skip_sum(call, 4), call.has(3) ? ", Beta" : "");
}

const std::map<std::string, ExpansionText>& texts() {
  static const std::map<std::string, ExpansionText> table = {
      {"ai.onnx.preview.training.Adagrad", training_adagrad},
      {"ai.onnx.preview.training.Adam", training_adam},
      {"ai.onnx.preview.training.Momentum", training_momentum},
      {"com.microsoft.Attention", microsoft_attention},
      {"com.microsoft.BiasGelu", bias_gelu},
      {"com.microsoft.EmbedLayerNormalization", microsoft_embed_layer_norm},
      {"com.microsoft.FastGelu", fast_gelu},
      {"com.microsoft.FusedMatMul", fused_matmul},
      {"com.microsoft.Gelu", gelu},
      {"com.microsoft.GroupQueryAttention", microsoft_grouped_attention},
      {"com.microsoft.MatMulNBits", microsoft_matmul_nbits},
      {"com.microsoft.MoE", microsoft_moe},
      {"com.microsoft.MultiHeadAttention", microsoft_multi_head_attention},
      {"com.microsoft.QuickGelu", quick_gelu},
      {"com.microsoft.RotaryEmbedding", microsoft_rotary_embedding},
      {"com.microsoft.SkipLayerNormalization", skip_layer_norm},
      {"com.microsoft.SkipSimplifiedLayerNormalization", skip_simplified_layer_norm},
      {"SimplifiedLayerNormalization", simplified_layer_norm},
  };
  return table;
}

}  // namespace

std::vector<std::string> own_expansion_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : texts()) names.push_back(name);
  return names;
}

bool has_own_expansion(const onnx::NodeProto& node) {
  return texts().count(qualified_name(node.domain(), node.op_type())) != 0;
}

std::shared_ptr<const onnx::FunctionProto> own_expansion(
    const onnx::NodeProto& node, const std::vector<onnx::TypeProto>& input_types) {
  const auto entry = texts().find(qualified_name(node.domain(), node.op_type()));
  if (entry == texts().end()) return nullptr;
  const std::string body = entry->second(ExpansionCall(node, input_types));
  if (body.empty()) return nullptr;
  const std::string text = "<domain: \"own\", opset_import: [\"\" : 23]> Body " + body;
  auto function = std::make_shared<onnx::FunctionProto>();
  const auto status = onnx::OnnxParser::Parse(*function, text.c_str());
  RF_CHECK(status.IsOK(), "{}: {}", node.op_type(), status.ErrorMessage());
  function->set_name(node.op_type());
  return function;
}

}  // namespace redfuser
