// Models of ai.onnx.ml that are products: linear ones and support vector regression.
#include <algorithm>

#include "base/error.h"
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// `XM`, the input as a float matrix [rows, features].
std::string matrix_text(const ExpansionCall& call) {
  if (call.rank(0) != 1 && call.rank(0) != 2) call.fail("the input must be [N,features]");
  return call.rank(0) == 1 ? "XF = Cast<to = 1>(X) Front = Constant<value_ints = [0]>() XM = "
                             "Unsqueeze(XF, Front) "
                           : "XM = Cast<to = 1>(X) ";
}

// The number of features that `count` coefficients of `rows` rows are for, checked.
int64_t features_for(const ExpansionCall& call, const char* name, int64_t rows) {
  const int64_t count = call.length(name);
  if (count == 0 || rows <= 0 || count % rows != 0) {
    call.fail(fmt::format("{} has {} values for {} rows", name, count, rows));
  }
  const int64_t known = call.size(0, call.rank(0) - 1);
  if (known >= 0 && known != count / rows) {
    call.fail(fmt::format("{} is for {} features, the input has {}", name, count / rows, known));
  }
  return count / rows;
}

// A list attribute as the matrix `result` [rows, columns].
std::string weights_text(const char* result, const char* list, int64_t rows, int64_t columns) {
  return fmt::format(
      "{0}List = Constant<value_floats: floats = @{1}>() "
      "{0}Size = Constant<value_ints = [{2}, {3}]>() {0} = Reshape({0}List, {0}Size) ",
      result, list, rows, columns);
}

// √2·erf⁻¹(2S-1) by Winitzki's approximation, with the constants of ONNX Runtime, in a form without
// cancellation.
constexpr const char* kProbit = R"(
    Two = Constant<value_float = 2.0>()
    UnitP = Constant<value_float = 1.0>()
    NilP = Constant<value_float = 0.0>()
    MinusP = Constant<value_float = -1.0>()
    Half = Constant<value_float = 0.5>()
    Slope = Constant<value_float = 0.147>()
    Start = Constant<value_float = 4.330750>()
    Root2 = Constant<value_float = 1.41421356>()
    S2 = Mul(S, Two)
    T = Sub(S2, UnitP)
    Negative = Less(T, NilP)
    Side = Where(Negative, MinusP, UnitP)
    TMinus = Sub(UnitP, T)
    TPlus = Add(UnitP, T)
    TT = Mul(TMinus, TPlus)
    LogT = Log(TT)
    HalfLog = Mul(LogT, Half)
    V = Add(HalfLog, Start)
    VV = Mul(V, V)
    V2 = Div(LogT, Slope)
    Below = Sub(VV, V2)
    RootV = Sqrt(Below)
    Above = Add(RootV, V)
    Risen = Neg(V2)
    V3 = Div(Risen, Above)
    Inverse = Sqrt(V3)
    Signed = Mul(Inverse, Side)
    Z = Mul(Signed, Root2)
  )";

// Softmax that leaves zeros at zero.
constexpr const char* kSoftmaxZero = R"(
    LastZ = Constant<value_ints = [-1]>()
    NilZ = Constant<value_float = 0.0>()
    Tiny = Constant<value_float = 0.0000001>()
    Largest = ReduceMax(S, LastZ)
    Down = Sub(S, Largest)
    E = Exp(Down)
    Size = Abs(S)
    Counts = Greater(Size, Tiny)
    Powers = Where(Counts, E, NilZ)
    Sum = ReduceSum(Powers, LastZ)
    Lowest = Neg(Largest)
    Scale = Exp(Lowest)
    Small = Mul(S, Scale)
    Kept = Where(Counts, E, Small)
    Z = Div(Kept, Sum)
  )";

// `Z`, the transform of the scores `S`: a single score is changed by PROBIT only, a pair made of
// one by PROBIT and LOGISTIC.
enum class Scores { One, Pair, Many };
std::string transform_text(const ExpansionCall& call, Scores scores) {
  const std::string kind = call.text("post_transform", "NONE");
  if (kind == "PROBIT") return kProbit;
  if (kind != "NONE" && kind != "LOGISTIC" && kind != "SOFTMAX" && kind != "SOFTMAX_ZERO") {
    call.fail(fmt::format("unknown post_transform \"{}\"", kind));
  }
  if (kind == "NONE" || scores == Scores::One) return "Z = Identity(S) ";
  if (kind == "LOGISTIC") return "Z = Sigmoid(S) ";
  if (scores == Scores::Pair) return "Z = Identity(S) ";
  return kind == "SOFTMAX" ? "Z = Softmax<axis = -1>(S) " : kSoftmaxZero;
}

// `K` [rows, vectors], the kernel of XM's rows and the matrix `SV` of support vectors.
std::string kernel_text(const ExpansionCall& call) {
  const std::string kind = call.text("kernel_type", "LINEAR");
  if (kind == "LINEAR") return "K = Gemm<transB = 1>(XM, SV) ";
  if (kind != "POLY" && kind != "RBF" && kind != "SIGMOID") {
    call.fail(fmt::format("unknown kernel_type \"{}\"", kind));
  }
  if (call.length("kernel_params") != 3) {
    call.fail("kernel_params must hold gamma, coef0 and degree");
  }
  const char* parameters =
      "Parameters = Constant<value_floats: floats = @kernel_params>() "
      "Gamma, Coef, Degree = Split<axis = 0, num_outputs = 3>(Parameters) ";
  if (kind == "RBF") {
    return fmt::format(R"({}
      Middle = Constant<value_ints = [1]>()
      LastK = Constant<value_ints = [-1]>()
      XK = Unsqueeze(XM, Middle)
      Apart = Sub(XK, SV)
      Distance = ReduceSumSquare<keepdims = 0>(Apart, LastK)
      Scaled = Mul(Distance, Gamma)
      Falling = Neg(Scaled)
      K = Exp(Falling)
    )",
                       parameters);
  }
  return fmt::format(
      "{} Dot = Gemm<transB = 1>(XM, SV) Scaled = Mul(Dot, Gamma) "
      "Moved = Add(Scaled, Coef) {} ",
      parameters, kind == "POLY" ? "K = Pow(Moved, Degree)" : "K = Tanh(Moved)");
}

// `Y`, the labels at the positions `At`.
std::string labels_text(bool words) {
  return fmt::format("Labels = Constant<{}>() Y = Gather(Labels, At) ",
                     words ? "value_strings: strings = @classlabels_strings"
                           : "value_ints: ints = @classlabels_ints");
}

}  // namespace

std::string learning_linear_regressor(const ExpansionCall& call) {
  const int64_t targets = call.integer("targets", 1), intercepts = call.length("intercepts");
  std::string body = matrix_text(call);
  const int64_t features = features_for(call, "coefficients", targets);
  if (intercepts != 0 && intercepts != targets) {
    call.fail(fmt::format("{} intercepts for {} targets", intercepts, targets));
  }
  body += weights_text("W", "coefficients", targets, features);
  body += intercepts != 0 ? "B = Constant<value_floats: floats = @intercepts>() "
                            "S = Gemm<transB = 1>(XM, W, B) "
                          : "S = Gemm<transB = 1>(XM, W) ";
  return fmt::format("<coefficients, intercepts, targets, post_transform> (X) => (Z) {{ {} {} }}",
                     body, transform_text(call, targets == 1 ? Scores::One : Scores::Many));
}

std::string learning_linear_classifier(const ExpansionCall& call) {
  const bool words = call.length("classlabels_strings") != 0;
  const int64_t labels = call.length(words ? "classlabels_strings" : "classlabels_ints");
  std::string body = matrix_text(call);
  const int64_t intercepts = call.length("intercepts");
  const int64_t known = call.size(0, call.rank(0) - 1);
  const int64_t rows = intercepts != 0 ? intercepts
                       : known > 0     ? call.length("coefficients") / known
                                       : labels;
  const int64_t features = features_for(call, "coefficients", rows);
  if (labels != std::max<int64_t>(rows, 2)) {
    call.fail(fmt::format("{} class labels for {} rows of coefficients", labels, rows));
  }
  body += weights_text("W", "coefficients", rows, features);
  body += intercepts != 0 ? "B = Constant<value_floats: floats = @intercepts>() "
                            "Raw = Gemm<transB = 1>(XM, W, B) "
                          : "Raw = Gemm<transB = 1>(XM, W) ";
  const bool share = call.text("post_transform", "NONE") != "LOGISTIC";
  if (rows == 1) {
    body +=
        "Nil = Constant<value_float = 0.0>() Over = Greater(Raw, Nil) "
        "Line = Constant<value_ints = [-1]>() Flat = Reshape(Over, Line) At = Cast<to = 7>(Flat) ";
    body +=
        share ? "Unit = Constant<value_float = 1.0>() Rest = Sub(Unit, Raw) " : "Rest = Neg(Raw) ";
    body += "S = Concat<axis = 1>(Rest, Raw) ";
  } else {
    body += "At = ArgMax<axis = 1, keepdims = 0>(Raw) S = Identity(Raw) ";
  }
  return fmt::format(
      "<coefficients, intercepts, classlabels_ints, classlabels_strings, multi_class, "
      "post_transform> (X) => (Y, Z) {{ {} {} {} }}",
      body, labels_text(words), transform_text(call, rows == 1 ? Scores::Pair : Scores::Many));
}

std::string learning_svm_regressor(const ExpansionCall& call) {
  const int64_t vectors = call.integer("n_supports", 0);
  if (call.length("rho") < 1) call.fail("it has no rho");
  if (vectors < 0) call.fail(fmt::format("n_supports: {}", vectors));
  std::string body = matrix_text(call);
  if (vectors > 0) {
    const int64_t features = features_for(call, "support_vectors", vectors);
    if (call.length("coefficients") != vectors) {
      call.fail(fmt::format("{} coefficients for {} support vectors", call.length("coefficients"),
                            vectors));
    }
    body += weights_text("SV", "support_vectors", vectors, features) + kernel_text(call);
    body += weights_text("W", "coefficients", 1, vectors) + "P = Gemm<transB = 1>(K, W) ";
  } else {
    const int64_t features = features_for(call, "coefficients", 1);
    body += weights_text("W", "coefficients", 1, features) + "P = Gemm<transB = 1>(XM, W) ";
  }
  // Only the first rho is used.
  body +=
      "RhoList = Constant<value_floats: floats = @rho>() Zeroth = Constant<value_int = 0>() "
      "Rho = Gather(RhoList, Zeroth) S = Add(P, Rho) ";
  body += call.integer("one_class", 0) != 0
              ? "Nil = Constant<value_float = 0.0>() Plus = Constant<value_float = 1.0>() "
                "Minus = Constant<value_float = -1.0>() In = Greater(S, Nil) "
                "Y = Where(In, Plus, Minus) "
              : "Y = Identity(S) ";
  return fmt::format(
      "<coefficients, kernel_params, kernel_type, n_supports, one_class, post_transform, rho, "
      "support_vectors> (X) => (Y) {{ {} }}",
      body);
}

}  // namespace redfuser::onnx
