// com.microsoft operators that ai.onnx has taken over, under the same or another name; operators of
// ai.onnx that are others in a few words.
#include "onnx/expansion_call.h"

namespace redfuser {

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
  const int64_t p = call.integer("p", 2);
  call.refuse_if(p < 1 || call.rank(0) < 3, "this p or rank");
  std::string axes;
  for (int k = 2; k < call.rank(0); ++k) axes += fmt::format("{}{}", k == 2 ? "" : ", ", k);
  std::string text = fmt::format("(X) => (Y) {{ Axes = Constant<value_ints = [{}]>() ", axes);
  if (p <= 2) return text + fmt::format("Y = ReduceL{}(X, Axes) }}", p);
  return text + fmt::format(
                    "A = Abs(X) P = Constant<value_float = {0}.0>() PX = CastLike(P, X) "
                    "Powers = Pow(A, PX) S = ReduceSum(Powers, Axes) "
                    "R = Reciprocal(PX) Y = Pow(S, R) }}",
                    p);
}

}  // namespace redfuser
