// com.microsoft.Attention, QAttention and MultiHeadAttention.
#include "onnx/functions/attention_body.h"

namespace redfuser::onnx {
namespace {

// Element `index` of `axis` as `result`.
std::string pick_text(const std::string& result, const std::string& x, int axis, int index) {
  return fmt::format("{0}At = Constant<value_int = {3}>() {0} = Gather<axis = {2}>({1}, {0}At) ",
                     result, x, axis, index);
}

// Keys = PastKey, then K; the same for values.
std::string cached_text(bool past) {
  return past ? "Keys = Concat<axis = 2>(PastKey, K) Values = Concat<axis = 2>(PastValue, V) "
              : "Keys = Identity(K) Values = Identity(V) ";
}

// Past and Present hold keys and values as one tensor.
std::string stacked_cache_text(bool past) {
  std::string text =
      past ? pick_text("PastKey", "Past", 0, 0) + pick_text("PastValue", "Past", 0, 1) : "";
  return text + cached_text(past) +
         "FirstAxis = Constant<value_ints = [0]>() KeysU = Unsqueeze(Keys, FirstAxis) "
         "ValuesU = Unsqueeze(Values, FirstAxis) Present = Concat<axis = 0>(KeysU, ValuesU) ";
}

// Attention of QKV, the projection of all three ([batch, length, sizes]).
std::string projected_text(const ExpansionCall& call, const AttentionScoreInputs& terms) {
  const int64_t heads = call.integer("num_heads", 0);
  call.refuse_if(heads <= 0 || heads > kMaxHeads, "this number of heads");
  call.refuse_if(call.integer("do_rotary", 0) != 0, "do_rotary");
  call.refuse_if(call.integer("past_present_share_buffer", 0) != 0, "past_present_share_buffer");
  const std::vector<int64_t> sizes = call.integers("qkv_hidden_sizes");
  call.refuse_if(!sizes.empty() && sizes.size() != 3, "qkv_hidden_sizes of other than 3 sizes");
  std::string text = sizes.empty() ? "QL, KL, VL = Split<axis = -1, num_outputs = 3>(QKV) "
                                   : fmt::format(
                                         "QKVSizes = Constant<value_ints = [{}, {}, {}]>() "
                                         "QL, KL, VL = Split<axis = -1>(QKV, QKVSizes) ",
                                         sizes[0], sizes[1], sizes[2]);
  text += heads_text("Q", "QL", heads) + heads_text("K", "KL", heads) +
          heads_text("V", "VL", heads) + stacked_cache_text(terms.past);
  return text + masked_attention_text(call, terms);
}

// Q4, K4 and V4 [batch, length, heads, size] from MultiHeadAttention's inputs; keys and values that
// are split into heads already become K and V.
std::string multi_head_inputs(const ExpansionCall& call, int64_t heads) {
  const auto apart = [&](const char* result, const char* x) {
    return fmt::format(
        "{0}Shape = Constant<value_ints = [0, 0, {2}, -1]>() {0}4 = Reshape({1}, {0}Shape) ",
        result, x, heads);
  };
  if (!call.has(1)) {
    call.refuse_if(call.rank(0) != 5 || call.has(2), "a query without a key that is not packed");
    return pick_text("Q4", "Query", 3, 0) + pick_text("K4", "Query", 3, 1) +
           pick_text("V4", "Query", 3, 2);
  }
  call.refuse_if(call.rank(0) != 3, "a query of this rank");
  if (!call.has(2)) {
    call.refuse_if(call.rank(1) != 5, "a key without a value that is not packed");
    return apart("Q", "Query") + pick_text("K4", "Key", 3, 0) + pick_text("V4", "Key", 3, 1);
  }
  call.refuse_if(call.rank(1) != call.rank(2) || (call.rank(1) != 3 && call.rank(1) != 4),
                 "a key or value of this rank");
  if (call.rank(1) == 4) return apart("Q", "Query") + "K = Identity(Key) V = Identity(Value) ";
  return apart("Q", "Query") + apart("K", "Key") + apart("V", "Value");
}

// Q, K and V by heads, with the bias of their projections.
std::string multi_head_projections(const ExpansionCall& call, int64_t heads) {
  const bool by_heads = call.has(1) && call.has(2) && call.rank(1) == 4;
  std::string text = multi_head_inputs(call, heads);
  if (call.has(3)) {
    // The sizes of Q and K are one; that of V may be another.
    text += fmt::format(
        "BiasHeads = Constant<value_ints = [{0}]>() BiasSize = Shape<start = 3, end = 4>(Q4) "
        "BiasWidth = Mul(BiasHeads, BiasSize) BiasAll = Shape(Bias) "
        "BiasTwo = Constant<value_ints = [2]>() BiasQK = Mul(BiasWidth, BiasTwo) "
        "BiasRest = Sub(BiasAll, BiasQK) "
        "BiasSizes = Concat<axis = 0>(BiasWidth, BiasWidth, BiasRest) "
        "BQ, BK, BV = Split<axis = 0>(Bias, BiasSizes) "
        "BiasShape = Constant<value_ints = [{0}, -1]>() ",
        heads);
  }
  for (const char* name : {"Q", "K", "V"}) {
    if (by_heads && *name != 'Q') continue;
    text += call.has(3) ? fmt::format(
                              "B{0}Heads = Reshape(B{0}, BiasShape) "
                              "{0}B = Add({0}4, B{0}Heads) ",
                              name)
                        : fmt::format("{0}B = Identity({0}4) ", name);
    text += fmt::format("{0} = Transpose<perm = [0, 2, 1, 3]>({0}B) ", name);
  }
  return text;
}

}  // namespace

std::string microsoft_multi_head_attention(const ExpansionCall& call) {
  const int64_t heads = call.integer("num_heads", 0);
  call.refuse_if(heads <= 0 || heads > kMaxHeads, "this number of heads");
  call.refuse_if(call.has(6) != call.has(7), "a past key without a past value");
  call.refuse_inputs(8, "a shared buffer (past_sequence_length, cache_indirection)");
  const AttentionScoreInputs terms{4, 5, call.has(6)};
  return fmt::format(
      "<num_heads, scale, unidirectional, mask_filter_value: float = -10000.0> "
      "(Query, Key, Value, Bias, PaddingMask, ScoreBias, PastKey, PastValue) "
      "=> (Y, PresentKey, PresentValue, ScoreMatrix) {{ {} {} {} "
      "PresentKey = Identity(Keys) PresentValue = Identity(Values) }}",
      multi_head_projections(call, heads), cached_text(call.has(6)),
      masked_attention_text(call, terms));
}

std::string microsoft_attention(const ExpansionCall& call) {
  call.refuse_inputs(6, "a shared buffer (past_sequence_length)");
  return fmt::format(
      "<num_heads, scale, unidirectional, do_rotary, rotary_embedding_dim, qkv_hidden_sizes, "
      "past_present_share_buffer, mask_filter_value: float = -10000.0> "
      "(X, W, Bias, PaddingMask, Past, ScoreBias) => (Y, Present) {{ XW = MatMul(X, W) {} {} }}",
      call.has(2) ? "QKV = Add(XW, Bias)" : "QKV = Identity(XW)",
      projected_text(call, {3, 5, call.has(4)}));
}

std::string microsoft_quantized_attention(const ExpansionCall& call) {
  return fmt::format(
      "<num_heads, scale, unidirectional, do_rotary, past_present_share_buffer, "
      "mask_filter_value: float = -10000.0> "
      "(X, W, Bias, XScale, WScale, PaddingMask, XZero, WZero, Past) => (Y, Present) {{ "
      "XWI = MatMulInteger(X, W{}) XWF = CastLike(XWI, XScale) BothScales = Mul(XScale, WScale) "
      "XW = Mul(XWF, BothScales) QKV = Add(XW, Bias) {} }}",
      call.has(7)   ? (call.has(6) ? ", XZero, WZero" : ", , WZero")
      : call.has(6) ? ", XZero"
                    : "",
      projected_text(call, {5, -1, call.has(8)}));
}

}  // namespace redfuser::onnx
