// com.microsoft activations, alone or after a sum.
#include "onnx/functions/bodies/activations.h"

#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

std::string microsoft_gelu(const ExpansionCall&) { return "(X) => (Y) { Y = Gelu(X) }"; }

std::string microsoft_bias_gelu(const ExpansionCall&) {
  return "(A, B) => (C) { T = Add(A, B) C = Gelu(T) }";
}

std::string microsoft_fast_gelu(const ExpansionCall& call) {
  return call.has(1) ? "(X, B) => (Y) { T = Add(X, B) Y = Gelu<approximate = \"tanh\">(T) }"
                     : "(X, B) => (Y) { Y = Gelu<approximate = \"tanh\">(X) }";
}

std::string microsoft_quick_gelu(const ExpansionCall&) {
  return R"(<alpha: float = 1.702> (X) => (Y) {
    A = Constant<value_float: float = @alpha>()
    AX = CastLike(A, X)
    T = Mul(X, AX)
    S = Sigmoid(T)
    Y = Mul(X, S)
  })";
}

std::string microsoft_bias_split_gelu(const ExpansionCall&) {
  return R"((X, Bias) => (Y) {
    T = Add(X, Bias)
    Linear, Gate = Split<axis = -1, num_outputs = 2>(T)
    G = Gelu(Gate)
    Y = Mul(Linear, G)
  })";
}

std::string microsoft_bias_add(const ExpansionCall&) {
  return "(X, Bias, Skip) => (Y) { T = Add(X, Bias) Y = Add(T, Skip) }";
}

std::string microsoft_gated_add(const ExpansionCall&) {
  return "(X, Y, Gate) => (Sum) { T = Mul(Y, Gate) Sum = Add(X, T) }";
}

std::string microsoft_scaled_silu(const ExpansionCall& call) {
  return fmt::format(
      R"(<alpha: float = 1.0> (X, Scale) => (Y) {{
    ScaleF = {}
    XF = Cast<to = 1>(X)
    ZF = Mul(ScaleF, XF)
    Z = CastLike(ZF, X)
    S = Sigmoid(Z)
    Y = Mul(Z, S)
  }})",
      call.has(1) ? "Cast<to = 1>(Scale)" : "Constant<value_float: float = @alpha>()");
}

std::string microsoft_bias_dropout(const ExpansionCall& call) {
  call.refuse_if(call.has(4) || call.has_output(1), "training (training_mode or a mask)");
  return call.has(2) ? "(X, Bias, Residual, Ratio) => (Y) { T = Add(X, Bias) Y = Add(T, Residual) }"
                     : "(X, Bias, Residual, Ratio) => (Y) { Y = Add(X, Bias) }";
}

// `result` = the named activation of x, with the parameters of the fused operators.
std::string activation_text(const ExpansionCall& call, const std::string& name,
                            const std::vector<float>& parameters, const std::string& x,
                            const std::string& result) {
  if (name.empty()) return fmt::format("{} = Identity({}) ", result, x);
  for (const char* plain : {"Relu", "Tanh", "Sigmoid", "HardSwish", "Softplus", "Softsign"}) {
    if (name == plain) return fmt::format("{} = {}({}) ", result, plain, x);
  }
  const auto parameter = [&](size_t i, float fallback) {
    return i < parameters.size() ? parameters[i] : fallback;
  };
  if (name == "LeakyRelu" || name == "Elu") {
    return fmt::format("{} = {}<alpha = {:#.9g}>({}) ", result, name,
                       parameter(0, name == "Elu" ? 1.0f : 0.01f), x);
  }
  if (name == "HardSigmoid") {
    return fmt::format("{} = HardSigmoid<alpha = {:#.9g}, beta = {:#.9g}>({}) ", result,
                       parameter(0, 0.2f), parameter(1, 0.5f), x);
  }
  call.refuse_if(name != "Clip" || parameters.size() != 2, "the activation " + name);
  return fmt::format(
      "{0}Low = Constant<value_float = {2:#.9g}>() {0}High = Constant<value_float = {3:#.9g}>() "
      "{0}LowX = CastLike({0}Low, {1}) {0}HighX = CastLike({0}High, {1}) "
      "{0} = Clip({1}, {0}LowX, {0}HighX) ",
      result, x, parameters[0], parameters[1]);
}

}  // namespace redfuser::onnx
