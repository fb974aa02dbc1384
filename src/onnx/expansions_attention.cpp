#include "base/error.h"
#include "onnx/expansion_call.h"

namespace redfuser {
namespace {

// Names of a body's attention inputs; an empty name is an absent input.
struct AttentionInputs {
  std::string padding;  // int32 [batch, keys], 0: masked
  std::string bias;     // added to the scores
  bool past = false;    // PastKey, PastValue
};

// The scores' addend as `Mask`: the bias plus mask_filter_value where the padding mask is 0.
std::string mask_text(const AttentionInputs& inputs) {
  if (inputs.padding.empty() && inputs.bias.empty()) {
    return "Zero = Constant<value = float[1, 1] {0}>() Mask = CastLike(Zero, Q)";
  }
  if (inputs.padding.empty()) return fmt::format("Mask = Identity({})", inputs.bias);
  return fmt::format(R"(
    Off = Constant<value_float: float = @mask_filter_value>()
    OffQ = CastLike(Off, Q)
    On = Constant<value_float = 0.0>()
    OnQ = CastLike(On, Q)
    Keep = Cast<to = 9>({})
    Middle = Constant<value_ints = [1, 2]>()
    Keep4 = Unsqueeze(Keep, Middle)
    Padding = Where(Keep4, OnQ, OffQ)
    {})",
                     inputs.padding,
                     inputs.bias.empty() ? "Mask = Identity(Padding)"
                                         : fmt::format("Mask = Add(Padding, {})", inputs.bias));
}

// Attention of Q, K and V ([batch, length, heads * size]) by ONNX's own operator.
std::string attention_text(const ExpansionCall& call, const AttentionInputs& inputs,
                           const std::string& outputs) {
  // ONNX Runtime takes a scale of 0 as the default, which an absent attribute stands for.
  const char* scale = call.real("scale", 0) != 0 ? ", scale: float = @scale" : "";
  return fmt::format(
      "{} {} = Attention<q_num_heads: int = @num_heads, kv_num_heads: int = @num_heads, "
      "is_causal = {}{}>(Q, K, V, Mask{})",
      mask_text(inputs), outputs, call.integer("unidirectional", 0) != 0 ? 1 : 0, scale,
      inputs.past ? ", PastKey, PastValue" : "");
}

bool padding_is_supported(const ExpansionCall& call, int input) {
  return !call.has(input) || call.rank(input) == 2;
}

}  // namespace

std::string microsoft_multi_head_attention(const ExpansionCall& call) {
  const bool separate =
      call.has(1) && call.has(2) && call.rank(0) == 3 && call.rank(1) == 3 && call.rank(2) == 3;
  if (!separate || !padding_is_supported(call, 4) || call.has(6) != call.has(7)) return "";
  const AttentionInputs inputs{call.has(4) ? "PaddingMask" : "", call.has(5) ? "ScoreBias" : "",
                               call.has(6)};
  const char* projections = call.has(3)
                                ? "BQ, BK, BV = Split<axis = 0, num_outputs = 3>(Bias) "
                                  "Q = Add(Query, BQ) K = Add(Key, BK) V = Add(Value, BV)"
                                : "Q = Identity(Query) K = Identity(Key) V = Identity(Value)";
  return fmt::format(
      "<num_heads, scale, unidirectional, mask_filter_value: float = -10000.0> "
      "(Query, Key, Value, Bias, PaddingMask, ScoreBias, PastKey, PastValue) "
      "=> (Y, PresentKey, PresentValue) {{ {} {} }}",
      projections, attention_text(call, inputs, "Y, PresentKey, PresentValue"));
}

std::string microsoft_attention(const ExpansionCall& call) {
  const bool plain = !call.has(4) && !call.has_output(1) &&
                     !call.has_attribute("qkv_hidden_sizes") && call.integer("do_rotary", 0) == 0;
  if (!plain || !padding_is_supported(call, 3)) return "";
  const AttentionInputs inputs{call.has(3) ? "PaddingMask" : "", call.has(5) ? "ScoreBias" : "",
                               false};
  return fmt::format(
      "<num_heads, scale, unidirectional, mask_filter_value: float = -10000.0> "
      "(X, W, Bias, PaddingMask, Past, ScoreBias) => (Y) "
      "{{ XW = MatMul(X, W) {} Q, K, V = Split<axis = -1, num_outputs = 3>(QKV) {} }}",
      call.has(2) ? "QKV = Add(XW, Bias)" : "QKV = Identity(XW)",
      attention_text(call, inputs, "Y"));
}

std::string microsoft_rotary_embedding(const ExpansionCall& call) {
  if (call.rank(1) != 2 || call.integer("is_packed_batching", 0) != 0) return "";
  const char* head =
      "<interleaved: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0, scale, "
      "is_packed_batching> (X, Positions, Cos, Sin) => (Y)";
  const char* attributes =
      "interleaved: int = @interleaved, rotary_embedding_dim: int = @rotary_embedding_dim";
  if (call.rank(0) == 4) {
    return fmt::format("{} {{ Y = RotaryEmbedding<{}>(X, Cos, Sin, Positions) }}", head,
                       attributes);
  }
  if (call.integer("num_heads", 0) > 0) {
    return fmt::format(
        "{} {{ Y = RotaryEmbedding<{}, num_heads: int = @num_heads>(X, Cos, Sin, Positions) }}",
        head, attributes);
  }
  // The number of heads follows from the tables: they have a column for half a head's size.
  return fmt::format(R"({} {{
    Half = Shape<start = 1, end = 2>(Cos)
    Two = Constant<value_ints = [2]>()
    Size = Mul(Half, Two)
    Rest = Constant<value_ints = [0, 0, -1]>()
    Heads = Concat<axis = 0>(Rest, Size)
    X4 = Reshape(X, Heads)
    XT = Transpose<perm = [0, 2, 1, 3]>(X4)
    YT = RotaryEmbedding<{}>(XT, Cos, Sin, Positions)
    Y4 = Transpose<perm = [0, 2, 1, 3]>(YT)
    Whole = Shape(X)
    Y = Reshape(Y4, Whole)
  }})",
                     head, attributes);
}

}  // namespace redfuser
