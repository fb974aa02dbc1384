// com.microsoft products with transpositions, factors and activations.
#include "onnx/functions/bodies/activations.h"
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// `name` + "T" = the operand with its first dimension moved behind the batch's, then its last two
// exchanged, as the flags say.
std::string operand_text(const ExpansionCall& call, const std::string& name, int input,
                         const char* batch_flag, const char* flag) {
  const int rank = call.rank(input);
  std::vector<int> order;
  for (int k = 0; k < rank; ++k) order.push_back(k);
  if (rank > 2 && call.integer(batch_flag, 0) != 0) {
    for (int k = 0; k + 2 < rank; ++k) order[static_cast<size_t>(k)] = k + 1;
    order[static_cast<size_t>(rank - 2)] = 0;
  }
  if (rank > 1 && call.integer(flag, 0) != 0) std::swap(order[order.size() - 2], order.back());
  std::string perm;
  for (const int k : order) perm += fmt::format("{}{}", perm.empty() ? "" : ", ", k);
  if (rank < 2) return fmt::format("{0}T = Identity({0}) ", name);
  return fmt::format("{0}T = Transpose<perm = [{1}]>({0}) ", name, perm);
}

}  // namespace

std::string microsoft_fused_matmul(const ExpansionCall& call) {
  return fmt::format(R"(<alpha: float = 1.0> (A, B) => (Y) {{
    {} {}
    P = MatMul(AT, BT)
    F = Constant<value_float: float = @alpha>()
    FP = CastLike(F, P)
    R = Mul(P, FP)
    {}
  }})",
                     operand_text(call, "A", 0, "transBatchA", "transA"),
                     operand_text(call, "B", 1, "transBatchB", "transB"),
                     activation_text(call, call.text("activation", ""),
                                     {call.real("activation_alpha", 0.01f)}, "R", "Y"));
}

std::string microsoft_fused_gemm(const ExpansionCall& call) {
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (call.has_attribute(name)) parameters.push_back(call.real(name, 0));
  }
  return fmt::format(
      "(A, B, C) => (Y) {{ T = Gemm<alpha: float = @alpha, beta: float = @beta, "
      "transA: int = @transA, transB: int = @transB>(A, B{}) {} }}",
      call.has(2) ? ", C" : "",
      activation_text(call, call.text("activation", ""), parameters, "T", "Y"));
}

std::string microsoft_fused_conv(const ExpansionCall& call) {
  return fmt::format(
      "(X, W, B, Z) => (Y) {{ T = Conv<auto_pad: string = @auto_pad, dilations: ints = "
      "@dilations, group: int = @group, kernel_shape: ints = @kernel_shape, pads: ints = @pads, "
      "strides: ints = @strides>(X, W{}) {} {} }}",
      call.has(2) ? ", B" : "", call.has(3) ? "S = Add(T, Z)" : "S = Identity(T)",
      activation_text(call, call.text("activation", ""), call.reals("activation_params"), "S",
                      "Y"));
}

std::string microsoft_nhwc_conv(const ExpansionCall& call) {
  call.refuse_if(call.rank(0) != 4, "an input of this rank");
  return fmt::format(
      "(X, W, B) => (Y) {{ XC = Transpose<perm = [0, 3, 1, 2]>(X) "
      "WC = Transpose<perm = [0, 3, 1, 2]>(W) T = Conv<auto_pad: string = @auto_pad, "
      "dilations: ints = @dilations, group: int = @group, kernel_shape: ints = @kernel_shape, "
      "pads: ints = @pads, strides: ints = @strides>(XC, WC{}) "
      "Y = Transpose<perm = [0, 2, 3, 1]>(T) }}",
      call.has(2) ? ", B" : "");
}

std::string microsoft_distances(const ExpansionCall& call) {
  const std::string metric = call.text("metric", "sqeuclidean");
  call.refuse_if(metric != "sqeuclidean" && metric != "euclidean", "the metric " + metric);
  return fmt::format(R"((A, B) => (C) {{
    Middle = Constant<value_ints = [1]>()
    First = Constant<value_ints = [0]>()
    Last = Constant<value_ints = [2]>()
    AU = Unsqueeze(A, Middle)
    BU = Unsqueeze(B, First)
    D = Sub(AU, BU)
    DD = Mul(D, D)
    S = ReduceSum<keepdims = 0>(DD, Last)
    C = {}(S)
  }})",
                     metric == "euclidean" ? "Sqrt" : "Identity");
}

}  // namespace redfuser::onnx
