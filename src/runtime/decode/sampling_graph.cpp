#include "runtime/decode/sampling_graph.h"

#include "base/error.h"

namespace redfuser::runtime {
namespace {

// As ONNX's text format calls it.
std::string_view type_name(DType dtype) {
  if (dtype == DType::Float32) return "float";
  return dtype == DType::Float64 ? "double" : name_of(dtype);
}

// The last position in fp32.
std::string scores(const SamplingForm& form) {
  if (form.one_position) return "raw = Cast<to = 1>(logits) ";
  return "from = Constant<value = int64[1] {-1}>() "
         "to = Constant<value = int64[1] {9223372036854775807}>() "
         "row = Slice(logits, from, to, columns) flat = Squeeze(row, columns) "
         "raw = Cast<to = 1>(flat) ";
}

// Keskar et al., CTRL, 2019. A token that is repeated among those seen gets the same score again.
std::string penalised() {
  return "old = GatherElements<axis = 1>(raw, seen) zero = Constant<value = float {0}>() "
         "positive = Greater(old, zero) divided = Div(old, penalty) "
         "multiplied = Mul(old, penalty) changed = Where(positive, divided, multiplied) "
         "scores = ScatterElements<axis = 1>(raw, seen, changed) ";
}

// exp((x - max x) / temperature)
std::string weights(int64_t sorted) {
  const std::string values = sorted == 0 ? "values = Identity(scores) "
                                         : fmt::format(
                                               "k = Constant<value = int64[1] {{{}}}>() "
                                               "values, ids = TopK<axis = 1>(scores, k) ",
                                               sorted);
  return values +
         "largest = ReduceMax(values, columns) below = Sub(values, largest) "
         "wide = Cast<to = 11>(below) cooled = Div(wide, temperature) weights = Exp(cooled) ";
}

// Holtzman et al., The Curious Case of Neural Text Degeneration, 2020: columns are kept while the
// weights before them are less than top_p of the total. The drawn column is the first whose running
// sum is above a uniform part of the kept weights.
std::string drawn() {
  return "axis = Constant<value = int64 {1}>() none = Constant<value = double {0}>() "
         "one = Constant<value = int64 {1}>() "
         "sums = CumSum(weights, axis) total = ReduceSum(weights, columns) "
         "earlier = Sub(sums, weights) limit = Mul(total, top_p) kept = Less(earlier, limit) "
         "kept_sums = Where(kept, sums, none) whole = ReduceMax(kept_sums, columns) "
         "part = Mul(uniform, whole) passed = LessOrEqual(sums, part) "
         "passed_count = Cast<to = 7>(passed) first = ReduceSum(passed_count, columns) "
         "kept_count = Cast<to = 7>(kept) count = ReduceSum(kept_count, columns) "
         "last = Sub(count, one) column = Min(first, last) ";
}

}  // namespace

std::string sampling_graph(const SamplingForm& form) {
  std::string inputs =
      fmt::format("{}[{}] logits", type_name(form.dtype), form.one_position ? "b, v" : "b, n, v");
  std::string body = "columns = Constant<value = int64[1] {1}>() " + scores(form);
  if (form.penalises) {
    inputs += ", int64[b, seen] seen, float[b, 1] penalty";
    body += penalised();
  } else {
    body += "scores = Identity(raw) ";
  }
  if (!form.draws) {
    body += "token = ArgMax<axis = 1, keepdims = 0>(scores) ";
  } else {
    inputs += ", double temperature, double top_p, double[b, 1] uniform";
    body += weights(form.sorted) + drawn();
    body +=
        form.sorted > 0 ? "id = GatherElements<axis = 1>(ids, column) " : "id = Identity(column) ";
    body += "token = Squeeze(id, columns) ";
  }
  body +=
      "strange = IsNaN(raw) strange_float = Cast<to = 1>(strange) "
      "nan = ReduceMax<keepdims = 0>(strange_float, columns) ";
  return fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> next_token ({}) => (int64[b] token, float[b] "
      "nan) "
      "{{ {} }}",
      inputs, body);
}

}  // namespace redfuser::runtime
