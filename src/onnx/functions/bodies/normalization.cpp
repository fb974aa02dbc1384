// Normalisations that exporters fuse: with a skip connection, by root mean square, gated.
#include <algorithm>

#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// Root mean square over `axes`, in fp32; also gives InvStdDev.
std::string rms_text(const std::string& axes) {
  return fmt::format(R"(
    One = Constant<value_float = 1.0>()
    Eps = Constant<value_float: float = @epsilon>()
    Last = Constant<value_ints = [{}]>()
    XF = Cast<to = 1>(Sum)
    Sq = Mul(XF, XF)
    Mean = ReduceMean(Sq, Last)
    Shifted = Add(Mean, Eps)
    Std = Sqrt(Shifted)
    InvStdDev = Div(One, Std)
    NF = Mul(XF, InvStdDev)
    N = CastLike(NF, Sum)
    Y = Mul(N, Scale)
  )",
                     axes);
}

// input + skip + bias, as both skip normalisations start.
std::string skip_sum(const ExpansionCall& call, int bias) {
  return call.has(bias) ? "S0 = Add(X, Skip) Sum = Add(S0, Bias)" : "Sum = Add(X, Skip)";
}

}  // namespace

std::string simplified_layer_norm(const ExpansionCall& call) {
  const int64_t axis = call.integer("axis", -1);
  const int64_t rank = call.rank(0), first = axis < 0 ? axis + rank : axis;
  call.refuse_if(first < 0 || first >= rank, "this axis");
  std::string axes;
  for (int64_t k = first; k < rank; ++k) axes += fmt::format("{}{}", axes.empty() ? "" : ", ", k);
  return fmt::format(
      "<epsilon: float = 0.00001> (X, Scale) => (Y, InvStdDev) {{ Sum = Identity(X) {} }}",
      rms_text(axes));
}

std::string early_layer_norm(const ExpansionCall& call) {
  return fmt::format(
      "<axis: int = -1, epsilon: float = 0.00001> (X, Scale, B) => (Y, Mean, InvStdDev) {{ "
      "Y, Mean, InvStdDev = LayerNormalization<axis: int = @axis, epsilon: float = @epsilon>"
      "(X, Scale{}) }}",
      call.has(2) ? ", B" : "");
}

std::string microsoft_skip_simplified_layer_norm(const ExpansionCall& call) {
  return fmt::format(
      "<epsilon: float = 0.000000000001> (X, Skip, Scale, Bias) => (Y, Unused, InvStdDev, Sum) "
      "{{ {} {} Unused = Identity(InvStdDev) }}",
      skip_sum(call, 3), rms_text("-1"));
}

std::string microsoft_skip_layer_norm(const ExpansionCall& call) {
  return fmt::format(
      "<epsilon: float = 0.000000000001> (X, Skip, Gamma, Beta, Bias) => (Y, Mean, InvStdDev, Sum) "
      "{{ {} Y, Mean, InvStdDev = LayerNormalization<axis = -1, epsilon: float = @epsilon>"
      "(Sum, Gamma{}) }}",
      skip_sum(call, 4), call.has(3) ? ", Beta" : "");
}

// Rows of as many elements as the scale has, which may be parts of the last dimension.
std::string microsoft_gated_rms_norm(const ExpansionCall& call) {
  const std::string activation = call.text("activation", "silu");
  const bool silu = activation == "silu" || activation == "swish";
  call.refuse_if(!silu && activation != "sigmoid", "the activation " + activation);
  return fmt::format(R"(<epsilon: float = 0.00001> (X, Scale0, Gate) => (Result) {{
    Any = Constant<value_ints = [-1]>()
    Size = Shape(Scale0)
    Rows = Concat<axis = 0>(Any, Size)
    XFloat = Cast<to = 1>(X)
    Scale = Cast<to = 1>(Scale0)
    Sum = Reshape(XFloat, Rows)
    GateF = Cast<to = 1>(Gate)
    G = Sigmoid(GateF)
    {}
    {}
    Whole = Shape(X)
    YW = Reshape(Y, Whole)
    Gated = Mul(YW, Factor)
    Result = CastLike(Gated, X)
  }})",
                     silu ? "Factor = Mul(GateF, G)" : "Factor = Identity(G)", rms_text("-1"));
}

// Rows of one branch each; the scale is one for all branches, or one for each.
std::string microsoft_branchwise_rms_norm(const ExpansionCall& call) {
  const int64_t branches = call.integer("num_branches", 0);
  if (branches < 0) call.fail("num_branches must not be negative");
  const std::string grouped = branches == 0 ? "Grouped = Identity(XF0)"
                                            : fmt::format(
                                                  "Outer = Shape<start = 0, end = -1>(X) "
                                                  "Inner = Constant<value_ints = [{}, -1]>() "
                                                  "Form = Concat<axis = 0>(Outer, Inner) "
                                                  "Grouped = Reshape(XF0, Form)",
                                                  branches);
  const char* scale = call.has(1) ? "ScaleF = Cast<to = 1>(Scale0) Width = Shape<start = -1>(Sum) "
                                    "Any = Constant<value_ints = [-1]>() "
                                    "ScaleForm = Concat<axis = 0>(Any, Width) "
                                    "Scale = Reshape(ScaleF, ScaleForm)"
                                  : "Scale = Constant<value_float = 1.0>()";
  return fmt::format(R"(<epsilon: float = 0.00001> (X, Scale0) => (Result) {{
    XF0 = Cast<to = 1>(X)
    {}
    Sum = Identity(Grouped)
    {}
    {}
    Whole = Shape(X)
    YW = Reshape(Y, Whole)
    Result = CastLike(YW, X)
  }})",
                     grouped, scale, rms_text("-1"));
}

namespace {

// Y, the group normalisation of `source`, which has the rank of the first input.
std::string group_norm_text(const ExpansionCall& call, const char* source) {
  const bool last = call.integer("channels_last", 1) != 0,
             silu = call.integer("activation", 0) == 1;
  const int rank = call.rank(0);
  call.refuse_if(rank < 3, "an input of this rank");
  std::string to_first = "0, " + std::to_string(rank - 1), to_last = "0";
  for (int k = 1; k + 1 < rank; ++k) to_first += fmt::format(", {}", k);
  for (int k = 2; k < rank; ++k) to_last += fmt::format(", {}", k);
  to_last += ", 1";
  std::string text = fmt::format(
      "XF = Cast<to = 1>({}) ScaleF = Cast<to = 1>(Gamma) BiasF = Cast<to = 1>(Beta) ", source);
  text += last ? fmt::format("XC = Transpose<perm = [{}]>(XF) ", to_first) : "XC = Identity(XF) ";
  text +=
      "N = GroupNormalization<num_groups: int = @groups, epsilon: float = @epsilon>"
      "(XC, ScaleF, BiasF) ";
  text += silu ? "S = Sigmoid(N) A = Mul(N, S) " : "A = Identity(N) ";
  text += last ? fmt::format("YF = Transpose<perm = [{}]>(A) ", to_last) : "YF = Identity(A) ";
  return text + "Y = CastLike(YF, X) ";
}

}  // namespace

std::string microsoft_group_norm(const ExpansionCall& call) {
  return "<groups, channels_last, activation, epsilon: float = 0.00001> (X, Gamma, Beta) => (Y) "
         "{ " +
         group_norm_text(call, "X") + "}";
}

// The skip connection is of the input's shape, or [batch, channels] for all positions.
std::string microsoft_skip_group_norm(const ExpansionCall& call) {
  const bool last = call.integer("channels_last", 1) != 0;
  call.refuse_if(call.rank(0) != 4, "an input of this rank");
  std::string text =
      "<groups, channels_last, activation, epsilon: float = 0.00001> "
      "(X, Gamma, Beta, Skip0, Bias0) => (Y, Sum) { ";
  text += fmt::format("Places = Constant<value_ints = [{}]>() ", last ? "1, 2" : "2, 3");
  text += call.rank(3) == 2 ? "Skip = Unsqueeze(Skip0, Places) " : "Skip = Identity(Skip0) ";
  if (call.has(4)) {
    text += last ? "Bias = Identity(Bias0) "
                 : "After = Constant<value_ints = [1, 2]>() Bias = Unsqueeze(Bias0, After) ";
  }
  return text + skip_sum(call, 4) + " " + group_norm_text(call, "Sum") + "}";
}

}  // namespace redfuser::onnx
