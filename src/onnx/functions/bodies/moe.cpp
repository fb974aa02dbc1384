// com.microsoft.MoE and QMoE.
#include "onnx/functions/bodies/weights.h"
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// Numbers of the node's inputs; -1: absent. The body names them as here, capitalised.
struct MixtureInputs {
  int b1, b2, w3, b3;
  int shares = -1;  // RouterWeights, which Router only selects from
};

// Routing [tokens, experts]: the share where the expert is among the chosen, or 0.
std::string routing_text(const ExpansionCall& call, const MixtureInputs& inputs) {
  std::string text = fmt::format(
      "Width = Shape<start = -1>(X) MinusOne = Constant<value_ints = [-1]>() "
      "One = Constant<value_ints = [1]>() Zero = Constant<value_ints = [0]>() "
      "Two = Constant<value_ints = [2]>() Flat = Concat<axis = 0>(MinusOne, Width) "
      "X2 = Reshape(X, Flat) RouterF = Cast<to = 1>(Router) "
      "K = Constant<value_ints = [{}]>() ",
      call.integer("k", 1));
  text += inputs.shares >= 0 && call.has(inputs.shares)
              ? "Unused, Chosen = TopK<axis = -1>(RouterF, K) "
                "SharesF = Cast<to = 1>(RouterWeights) "
                "Best = GatherElements<axis = -1>(SharesF, Chosen) "
              : "Probabilities = Softmax<axis = -1>(RouterF) "
                "Best, Chosen = TopK<axis = -1>(Probabilities, K) ";
  text += call.integer("normalize_routing_weights", 0) != 0
              ? "BestSum = ReduceSum(Best, One) Shares = Div(Best, BestSum) "
              : "Shares = Identity(Best) ";
  return text + R"(
    Experts = Shape<start = 1, end = 2>(Router)
    Experts0 = Squeeze(Experts, Zero)
    Zero0 = Constant<value_int = 0>()
    One0 = Constant<value_int = 1>()
    Numbers = Range(Zero0, Experts0, One0)
    Chosen3 = Unsqueeze(Chosen, Two)
    Is = Equal(Chosen3, Numbers)
    IsF = Cast<to = 1>(Is)
    Shares3 = Unsqueeze(Shares, Two)
    Parts = Mul(IsF, Shares3)
    Routing = ReduceSum<keepdims = 0>(Parts, One)
  )";
}

// `result` = the product of x [experts or 1, tokens, depth] with the experts' `weight`, and `bias`.
std::string layer_text(const ExpansionCall& call, const char* weight, const char* bias,
                       int bias_input, const char* x, const char* result) {
  std::string text = fmt::format(
      "{0}F = Cast<to = 1>({0}) {0}T = Transpose<perm = [0, 2, 1]>({0}F) {2}0 = MatMul({1}, {0}T) ",
      weight, x, result);
  if (!call.has(bias_input)) return text + fmt::format("{0} = Identity({0}0) ", result);
  return text + fmt::format(
                    "{0}F = Cast<to = 1>({0}) {0}3 = Unsqueeze({0}F, One) "
                    "{1} = Add({1}0, {0}3) ",
                    bias, result);
}

// H2 = swiglu of Gate0 and Linear0.
std::string swiglu_text(const ExpansionCall& call) {
  std::string text =
      call.has_attribute("swiglu_limit")
          ? "Limit = Constant<value_float: float = @swiglu_limit>() NegLimit = Neg(Limit) "
            "Gate = Min(Gate0, Limit) LinearLow = Max(Linear0, NegLimit) "
            "Linear = Min(LinearLow, Limit) "
          : "Gate = Identity(Gate0) Linear = Identity(Linear0) ";
  return text +
         "Alpha = Constant<value_float: float = @activation_alpha>() "
         "BetaC = Constant<value_float: float = @activation_beta>() GA = Mul(Gate, Alpha) "
         "GS = Sigmoid(GA) GG = Mul(Gate, GS) LB = Add(Linear, BetaC) H2 = Mul(GG, LB) ";
}

// H2 of H1 and, where there is a third weight, U1.
std::string gated_text(const ExpansionCall& call, const MixtureInputs& inputs) {
  const std::string activation = call.text("activation_type", "relu");
  const int64_t fusion = call.integer("swiglu_fusion", 0);
  const bool third = call.has(inputs.w3);
  std::string text = third ? layer_text(call, "W3", "B3", inputs.b3, "X3", "U1") : "";
  if (activation == "swiglu") {
    call.refuse_if((fusion == 0) != third, "swiglu with this swiglu_fusion and these weights");
    // Gate and value are apart (0), alternate (1) or follow each other (2).
    if (fusion == 0) text += "Gate0 = Identity(H1) Linear0 = Identity(U1) ";
    if (fusion == 1)
      text +=
          "Most = Constant<value_ints = [9223372036854775807]>() "
          "Gate0 = Slice(H1, Zero, Most, Two, Two) Linear0 = Slice(H1, One, Most, Two, Two) ";
    if (fusion == 2) text += "Gate0, Linear0 = Split<axis = 2, num_outputs = 2>(H1) ";
    call.refuse_if(fusion < 0 || fusion > 2, "this swiglu_fusion");
    return text + swiglu_text(call);
  }
  if (activation == "relu") {
    text += "HA = Relu(H1) ";
  } else if (activation == "gelu") {
    text += "HA = Gelu<approximate = \"tanh\">(H1) ";
  } else if (activation == "silu") {
    text += "HS = Sigmoid(H1) HA = Mul(H1, HS) ";
  } else {
    call.refuse_if(activation != "identity", "the activation " + activation);
    text += "HA = Identity(H1) ";
  }
  return text + (third ? "H2 = Mul(HA, U1) " : "H2 = Identity(HA) ");
}

// Every expert is computed for every token and weighted by its routing, which is 0 unless the
// expert is chosen.
std::string mixture_text(const ExpansionCall& call, const MixtureInputs& inputs) {
  call.refuse_if(call.integer("use_sparse_mixer", 0) != 0, "use_sparse_mixer");
  return routing_text(call, inputs) + "XF = Cast<to = 1>(X2) X3 = Unsqueeze(XF, Zero) " +
         layer_text(call, "W1", "B1", inputs.b1, "X3", "H1") + gated_text(call, inputs) +
         layer_text(call, "W2", "B2", inputs.b2, "H2", "Z1") + R"(
    RoutingT = Transpose<perm = [1, 0]>(Routing)
    Routing3 = Unsqueeze(RoutingT, Two)
    Weighted = Mul(Z1, Routing3)
    Mixed = ReduceSum<keepdims = 0>(Weighted, Zero)
    MixedX = CastLike(Mixed, X)
    Whole = Shape(X)
    Y = Reshape(MixedX, Whole)
  )";
}

// `name` [experts, rows, depth] of name + "Q", whose scales and zero points are for whole rows or
// for blocks of them.
std::string dequantized_text(const ExpansionCall& call, const std::string& name, int weight,
                             int scale, int zero, int64_t bits) {
  call.refuse_if(!call.has(scale), "weights without scales");
  call.refuse_if(call.type(weight) != ::onnx::TensorProto::UINT8, "weights that are no bytes");
  const int64_t block = call.integer("block_size", 0);
  call.refuse_if((block > 0) != (call.rank(scale) == 3), "scales of this rank");
  std::string text =
      unpacked_text(name + "U", name + "Q", bits) +
      fmt::format(
          "{0}N = Cast<to = 1>({0}U) {0}ScaleF = Cast<to = 1>({0}Scale) "
          "{0}Axis = Constant<value_ints = [{1}]>() {0}Count = Shape<start = {2}, end = "
          "{3}>({0}U) {0}First = Constant<value_ints = [0]>() "
          "{0}Count0 = Squeeze({0}Count, {0}First) {0}From = Constant<value_int = 0>() "
          "{0}Step = Constant<value_int = 1>() "
          "{0}Elements = Range({0}From, {0}Count0, {0}Step) ",
          name, 2, block > 0 ? 2 : 1, block > 0 ? 3 : 2);
  // Packed zero points may be followed by padding.
  text += block > 0 ? fmt::format(
                          "{0}Block = Constant<value_int = {1}>() "
                          "{0}At = Div({0}Elements, {0}Block) "
                          "{0}SE = Gather<axis = 2>({0}ScaleF, {0}At) ",
                          name, block)
                    : fmt::format(
                          "{0}At = Identity({0}Elements) "
                          "{0}SE = Unsqueeze({0}ScaleF, {0}Axis) ",
                          name);
  if (!call.has(zero)) {
    text += fmt::format("{}ZE = Constant<value_float = {}.0>() ", name, 1 << (bits - 1));
  } else {
    text += unpacked_text(name + "ZU", name + "Zero", bits) +
            fmt::format("{0}ZF = Cast<to = 1>({0}ZU) {0}Z = Gather<axis = {1}>({0}ZF, {0}At) ",
                        name, block > 0 ? 2 : 1);
    text += block > 0 ? fmt::format("{0}ZE = Identity({0}Z) ", name)
                      : fmt::format("{0}ZE = Unsqueeze({0}Z, {0}Axis) ", name);
  }
  return text + fmt::format("{0}C = Sub({0}N, {0}ZE) {0} = Mul({0}C, {0}SE) ", name);
}

constexpr const char* kMixtureAttributes =
    "<swiglu_limit: float = 0.0, activation_alpha: float = 1.0, activation_beta: float = 0.0>";

}  // namespace

std::string microsoft_moe(const ExpansionCall& call) {
  return fmt::format("{} (X, Router, W1, B1, W2, B2, W3, B3) => (Y) {{ {} }}", kMixtureAttributes,
                     mixture_text(call, {3, 5, 6, 7}));
}

std::string microsoft_quantized_moe(const ExpansionCall& call) {
  call.refuse_if(call.text("quant_type", "int") != "int", "this quant_type");
  call.refuse_if(call.integer("weights_prepacked", -1) > 0, "weights_prepacked");
  call.refuse_inputs(15, "a global or activation scale");
  const auto bits = [&](const char* own) {
    const int64_t count = call.integer(own, call.integer("expert_weight_bits", 4));
    call.refuse_if(count != 2 && count != 4 && count != 8, "this number of bits");
    return count;
  };
  std::string text = dequantized_text(call, "W1", 2, 3, 11, bits("fc1_expert_weight_bits")) +
                     dequantized_text(call, "W2", 5, 6, 12, bits("fc2_expert_weight_bits"));
  if (call.has(8)) text += dequantized_text(call, "W3", 8, 9, 13, bits("fc3_expert_weight_bits"));
  return fmt::format(
      "{} (X, Router, W1Q, W1Scale, B1, W2Q, W2Scale, B2, W3Q, W3Scale, B3, W1Zero, W2Zero, "
      "W3Zero, RouterWeights) => (Y) {{ {} {} }}",
      kMixtureAttributes, text, mixture_text(call, {4, 7, 8, 10, 14}));
}

}  // namespace redfuser::onnx
