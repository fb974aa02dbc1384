// com.microsoft operators of recurrent mixers: linear attention, its gates, the convolution before.
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

std::string microsoft_linear_attention(const ExpansionCall& call) {
  call.refuse_if(call.integer("state_window", 0) != 0, "state_window");
  call.refuse_if(call.integer("q_num_heads", 0) < call.integer("kv_num_heads", 0),
                 "more heads of keys than of queries");
  std::string optional;
  for (const auto& [input, name] : {std::pair{3, "Past"}, {4, "Decay"}, {5, "Beta"}}) {
    optional += fmt::format(", {}", call.has(input) ? name : "");
  }
  return fmt::format(
      "<q_num_heads, kv_num_heads, scale, update_rule> (Q, K, V, Past, Decay, Beta) => (Y, State) "
      "{{ Y, State = LinearAttention<q_num_heads: int = @q_num_heads, "
      "kv_num_heads: int = @kv_num_heads, scale: float = @scale, "
      "update_rule: string = @update_rule>(Q, K, V{}) }}",
      optional);
}

std::string microsoft_linear_attention_gate(const ExpansionCall& call) {
  const char* update = call.has(3) ? "Beta = Sigmoid(B)" : "";
  return fmt::format(R"((A, Bias, Scale, B) => (Decay, Beta) {{
    AF = Cast<to = 1>(A)
    Shifted = Add(AF, Bias)
    Positive = Softplus(Shifted)
    DecayF = Mul(Scale, Positive)
    Decay = CastLike(DecayF, A)
    {}
  }})",
                     update);
}

// The convolution of the past positions and the new ones, without padding; the last positions are
// the next state. [batch, positions, channels...] is transposed on the way in and out.
std::string microsoft_causal_convolution(const ExpansionCall& call) {
  call.refuse_if(call.integer("ndim", 1) != 1, "ndim other than 1");
  call.refuse_if(call.integer("state_window", 0) != 0, "state_window");
  const std::string activation = call.text("activation", "none");
  const bool silu = activation == "silu" || activation == "swish";
  call.refuse_if(!silu && activation != "none", "the activation " + activation);
  const int64_t channels = call.size(1, 0), taps = call.size(1, 2);
  const int64_t dilation = call.integer("dilation", 1);
  call.refuse_if(channels < 1 || taps < 1, "a kernel of sizes that only a run knows");
  if (dilation < 1) call.fail("dilation must be positive");
  const bool last = call.integer("channels_last", 0) != 0;
  const int64_t state = (taps - 1) * dilation;
  const auto to_first = [&](const char* from, const char* to) {
    return last ? fmt::format("{1}R = Reshape({0}, Flat) {1} = Transpose<perm = [0, 2, 1]>({1}R) ",
                              from, to)
                : fmt::format("{1} = Identity({0}) ", from, to);
  };
  const auto back = [&](const char* from, const char* shape, const char* to) {
    return last ? fmt::format("{2}T = Transpose<perm = [0, 2, 1]>({0}) {2} = Reshape({2}T, {1}) ",
                              from, shape, to)
                : fmt::format("{1} = Identity({0}) ", from, to);
  };
  std::string text =
      "(X, W, B, Past) => (Y, Present) { Flat = Constant<value_ints = [0, 0, -1]>() "
      "Third = Constant<value_ints = [2]>() " +
      to_first("X", "XC");
  if (call.has(3)) {
    text += to_first("Past", "PastC") + "Whole = Concat<axis = 2>(PastC, XC) ";
  } else {
    text += fmt::format(
        "Pads = Constant<value_ints = [0, 0, {}, 0, 0, 0]>() Whole = Pad(XC, Pads) ", state);
  }
  text += fmt::format("C = Conv<group = {}, dilations = [{}]>(Whole, W{}) ", channels, dilation,
                      call.has(2) ? ", B" : "");
  text += silu ? "S = Sigmoid(C) YC = Mul(C, S) " : "YC = Identity(C) ";
  text += "Shape = Shape(X) " + back("YC", "Shape", "Y");
  text += fmt::format(R"(
    Length = Shape<start = 2, end = 3>(Whole)
    State = Constant<value_ints = [{}]>()
    From = Sub(Length, State)
    PresentC = Slice(Whole, From, Length, Third)
    Batch = Shape<start = 0, end = 1>(X)
    Channels = Shape<start = 2>(X)
    PresentShape = Concat<axis = 0>(Batch, State, Channels)
  )",
                      state);
  return text + back("PresentC", "PresentShape", "Present") + "}";
}

}  // namespace redfuser::onnx
