// com.microsoft operators that are now in ai.onnx, perhaps under another name; operators of ai.onnx
// that are short compositions of others.
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

std::string microsoft_gather_nd(const ExpansionCall&) {
  return "(X, Indices) => (Y) { I = Cast<to = 7>(Indices) Y = GatherND(X, I) }";
}

std::string microsoft_expand_dims(const ExpansionCall&) {
  return "(X, Axis) => (Y) { Line = Constant<value_ints = [-1]>() A64 = Cast<to = 7>(Axis) "
         "Axes = Reshape(A64, Line) Y = Unsqueeze(X, Axes) }";
}

std::string microsoft_range(const ExpansionCall& call) {
  std::string text =
      "(Start, Limit, Delta) => (Y) { None = Constant<value = int64[0] {}>() "
      "From = Reshape(Start, None) To = Reshape(Limit, None) ";
  text += call.has(2) ? "Step = Reshape(Delta, None) "
                      : "One = Constant<value_int = 1>() Step = CastLike(One, Start) ";
  return text + "Y = Range(From, To, Step) }";
}

std::string microsoft_trilu(const ExpansionCall& call) {
  return fmt::format("(X, K) => (Y) {{ Y = Trilu<upper: int = @upper>(X{}) }}",
                     call.has(1) ? ", K" : "");
}

std::string microsoft_unique(const ExpansionCall&) {
  return "(X) => (Y, Inverse, Counts) { Y, First, Inverse, Counts = Unique<sorted = 0>(X) }";
}

std::string microsoft_pad(const ExpansionCall& call) {
  std::string text =
      "(X, Pads, Value) => (Y) { Line = Constant<value_ints = [-1]>() "
      "P = Reshape(Pads, Line) None = Constant<value = int64[0] {}>() ";
  if (!call.has(2)) return text + "Y = Pad<mode: string = @mode>(X, P) }";
  return text + "V = Reshape(Value, None) Y = Pad<mode: string = @mode>(X, P, V) }";
}

std::string global_lp_pool(const ExpansionCall& call) {
  if (call.rank(0) < 3) call.fail("the input must be [N,C,sizes]");
  // Opset 1 has a floating p.
  const int64_t whole = call.integer("p", 2);
  const double p = whole != 0 ? static_cast<double>(whole) : static_cast<double>(call.real("p", 2));
  if (!(p > 0)) call.fail("p must be positive");
  std::string axes;
  for (int i = 2; i < call.rank(0); ++i) axes += fmt::format("{}{}", i == 2 ? "" : ", ", i);
  const char* head = "(X) => (Y)";
  const std::string start = fmt::format("Axes = Constant<value_ints = [{}]>()", axes);
  if (p == 1) return fmt::format("{} {{ {} Y = ReduceL1(X, Axes) }}", head, start);
  if (p == 2) return fmt::format("{} {{ {} Y = ReduceL2(X, Axes) }}", head, start);
  return fmt::format(R"({} {{ {}
    XF = Cast<to = {}>(X)
    P = Constant<value = double {{{:.17g}}}>()
    Root = Constant<value = double {{{:.17g}}}>()
    PF = CastLike(P, XF)
    RootF = CastLike(Root, XF)
    A = Abs(XF)
    Powers = Pow(A, PF)
    Sum = ReduceSum(Powers, Axes)
    YF = Pow(Sum, RootF)
    Y = CastLike(YF, X)
  }})",
                     head, start,
                     call.type(0) == ::onnx::TensorProto::DOUBLE ? ::onnx::TensorProto::DOUBLE
                                                                 : ::onnx::TensorProto::FLOAT,
                     p, 1 / p);
}

}  // namespace redfuser::onnx
