// com.microsoft.GroupQueryAttention: heads that share keys and values, over a cache.
#include "onnx/functions/attention_body.h"

namespace redfuser::onnx {
namespace {

// Rotary tables may cover a part of the head, by their width.
std::string rotary_text(const ExpansionCall& call, const char* result, const char* x) {
  const int64_t half = call.size(7, 1);
  return fmt::format(
      "{} = RotaryEmbedding<interleaved = {}, rotary_embedding_dim = {}>({}, Cos, Sin, Positions) ",
      result, call.integer("rotary_interleaved", 0), half > 0 ? 2 * half : 0, x);
}

// Q, K and V as [batch, heads, length, size], from three inputs or one.
std::string grouped_projections(const ExpansionCall& call, int64_t heads, int64_t groups) {
  if (call.has(1)) {
    return heads_text("Q", "Query", heads) + heads_text("K", "Key", groups) +
           heads_text("V", "Value", groups);
  }
  return heads_text("QKV", "Query", heads + 2 * groups) +
         fmt::format(
             "Parts = Constant<value_ints = [{0}, {1}, {1}]>() "
             "Q, K, V = Split<axis = 1>(QKV, Parts) ",
             heads, groups);
}

// Element t of the cache is the past's before the batch element's own length and a new one after
// it. PastLength is [batch, 1]: 0 for a first prompt, whose elements are padded at the right.
constexpr const char* kPastLength = R"(
    One = Constant<value_ints = [1]>()
    Zero = Constant<value_ints = [0]>()
    One0 = Constant<value_int = 1>()
    Zero0 = Constant<value_int = 0>()
    Length = Shape<start = 1, end = 2>(Query)
    Length0 = Squeeze(Length, Zero)
    Total64 = Cast<to = 7>(TotalLength)
    Total1 = Reshape(Total64, One)
    Lengths64 = Cast<to = 7>(LastPositions)
    Lengths = Reshape(Lengths64, Column)
    Ends = Add(Lengths, One)
    Before = Sub(Ends, Length)
    FirstPrompt = Equal(Length, Total1)
    PastLength = Where(FirstPrompt, Zero, Before)
    Steps = Range(Zero0, Length0, One0)
    Positions0 = Add(PastLength, Steps)
    LowestPosition = Max(Positions0, Zero0)
  )";

// An extra element follows the past's elements, so that an empty past can be gathered from.
std::string cache_text(bool past) {
  if (!past) {
    return "PresentKey = Identity(KR) PresentValue = Identity(V) Keys = Shape<start = 2, end = "
           "3>(KR) ";
  }
  return R"(
    PastSize = Shape<start = 2, end = 3>(PastKey)
    Keys = Max(PastSize, Total1)
    Keys0 = Squeeze(Keys, Zero)
    Slots = Range(Zero0, Keys0, One0)
    Distance = Sub(Slots, PastLength)
    IsNewPlain = GreaterOrEqual(Distance, Zero0)
    Middle = Constant<value_ints = [1, 3]>()
    IsNew = Unsqueeze(IsNewPlain, Middle)
    LastNew = Sub(Length0, One0)
    NewSlotLow = Max(Distance, Zero0)
    NewSlot = Min(NewSlotLow, LastNew)
    NewSlot4 = Unsqueeze(NewSlot, Middle)
    OldSlot = Min(Slots, PastSize)
    OneMore = Constant<value_ints = [0, 0, 0, 0, 0, 0, 1, 0]>()
    KeysBefore = Pad(PastKey, OneMore)
    ValuesBefore = Pad(PastValue, OneMore)
    KHead = Shape<start = 0, end = 2>(KR)
    KTail = Shape<start = 3, end = 4>(KR)
    VTail = Shape<start = 3, end = 4>(V)
    KSlots = Concat<axis = 0>(KHead, Keys, KTail)
    VSlots = Concat<axis = 0>(KHead, Keys, VTail)
    KIndex = Expand(NewSlot4, KSlots)
    VIndex = Expand(NewSlot4, VSlots)
    NewKeys = GatherElements<axis = 2>(KR, KIndex)
    NewValues = GatherElements<axis = 2>(V, VIndex)
    OldKeys = Gather<axis = 2>(KeysBefore, OldSlot)
    OldValues = Gather<axis = 2>(ValuesBefore, OldSlot)
    PresentKey = Where(IsNew, NewKeys, OldKeys)
    PresentValue = Where(IsNew, NewValues, OldValues)
  )";
}

// Query i sees key t if t is not later and at most a window earlier.
std::string visible_text(bool causal, int64_t window) {
  std::string text = R"(
    KeyCount = Squeeze(Keys, Zero)
    KeySteps = Range(Zero0, KeyCount, One0)
    LastAxis = Constant<value_ints = [-1]>()
    QueryAt = Unsqueeze(Positions0, LastAxis)
  )";
  text += causal ? "NotLater = LessOrEqual(KeySteps, QueryAt) "
                 : "EndAt = Unsqueeze(Ends, LastAxis) Reached = Less(KeySteps, EndAt) "
                   "Every = Equal(QueryAt, QueryAt) NotLater = And(Reached, Every) ";
  if (window > 0) {
    text += fmt::format(
        "Window = Constant<value_int = {}>() Oldest = Sub(QueryAt, Window) "
        "Recent = Greater(KeySteps, Oldest) Seen = And(NotLater, Recent) ",
        window);
  } else {
    text += "Seen = Identity(NotLater) ";
  }
  return text + "Seen4 = Unsqueeze(Seen, One) ";
}

bool has_sink(const ExpansionCall& call) {
  return call.has(11) || call.integer("smooth_softmax", 0) == 1;
}

std::string scores_text(const ExpansionCall& call) {
  std::string text =
      "KT = Transpose<perm = [0, 1, 3, 2]>(KeysOfAll) QF = Cast<to = 1>(QR) "
      "KF = Cast<to = 1>(KT) ";
  text += scale_text(call);
  text += "QS = Mul(QF, Scale) S0 = MatMul(QS, KF) ";
  if (call.real("softcap", 0) > 0) {
    text +=
        "Cap = Constant<value_float: float = @softcap>() SC0 = Div(S0, Cap) SC1 = Tanh(SC0) "
        "S1 = Mul(SC1, Cap) ";
  } else {
    text += "S1 = Identity(S0) ";
  }
  text +=
      call.has(10) ? "BiasF = Cast<to = 1>(ScoreBias) S2 = Add(S1, BiasF) " : "S2 = Identity(S1) ";
  // With a sink, a row without a visible key is 0, not NaN.
  return text +
         fmt::format("Never = Constant<value = float {{{}}}>() S3 = Where(Seen4, S2, Never) ",
                     has_sink(call) ? "-3.4028234e38" : "-inf");
}

// A sink contributes to the sum of a row, not to its values.
std::string softmax_text(const ExpansionCall& call) {
  if (!has_sink(call)) return "P = Softmax<axis = -1>(S3) ";
  std::string text =
      call.has(11)
          ? "SinkF = Cast<to = 1>(Sink) SinkShape = Constant<value_ints = [1, -1, 1, 1]>() "
            "SinkAt = Reshape(SinkF, SinkShape) "
          : "SinkAt = Constant<value = float {0.0}>() ";
  return text + R"(
    RowMax = ReduceMax(S3, LastAxis)
    Top = Max(RowMax, SinkAt)
    Shifted = Sub(S3, Top)
    E = Exp(Shifted)
    RowSum = ReduceSum(E, LastAxis)
    SinkShifted = Sub(SinkAt, Top)
    SinkE = Exp(SinkShifted)
    Whole = Add(RowSum, SinkE)
    P = Div(E, Whole)
  )";
}

// Keys and values of a group, for each of its heads.
std::string shared_text(int64_t heads, int64_t groups) {
  if (heads == groups)
    return "KeysOfAll = Identity(PresentKey) ValuesOfAll = Identity(PresentValue) ";
  const auto share = [&](const char* result, const char* x) {
    return fmt::format(
        "{0}U = Unsqueeze({1}, Two) {0}Repeat = Constant<value_ints = [1, 1, {2}, 1, 1]>() "
        "{0}E = Expand({0}U, {0}Repeat) {0}Shape = Constant<value_ints = [0, {3}, -1, 0]>() "
        "{0}Tail = Shape<start = 2, end = 4>({1}) {0}Head = Constant<value_ints = [0, {3}]>() "
        "{0}Whole = Concat<axis = 0>({0}Head, {0}Tail) {0} = Reshape({0}E, {0}Whole) ",
        result, x, heads / groups, heads);
  };
  return share("KeysOfAll", "PresentKey") + share("ValuesOfAll", "PresentValue");
}

// QN and KN: each head divided by its root mean square.
std::string head_norms_text(const ExpansionCall& call) {
  if (!call.has(14)) return "QN = Identity(Q) KN = Identity(K) ";
  std::string text = "NormEps = Constant<value_float: float = @qk_norm_epsilon>() ";
  for (const char* x : {"Q", "K"}) {
    text += fmt::format(
        "{0}Wide = Cast<to = 1>({0}) {0}Square = Mul({0}Wide, {0}Wide) "
        "{0}NormAxis = Constant<value_ints = [-1]>() {0}Mean = ReduceMean({0}Square, {0}NormAxis) "
        "{0}Shifted = Add({0}Mean, NormEps) {0}Root = Sqrt({0}Shifted) "
        "{0}Unit = Div({0}Wide, {0}Root) {0}Weight = Cast<to = 1>({1}Norm) "
        "{0}Weighted = Mul({0}Unit, {0}Weight) {0}N = CastLike({0}Weighted, {0}) ",
        x, *x == 'Q' ? "Query" : "Key");
  }
  return text;
}

}  // namespace

std::string microsoft_grouped_attention(const ExpansionCall& call) {
  const int64_t heads = call.integer("num_heads", 0), groups = call.integer("kv_num_heads", 0);
  const bool rotary = call.integer("do_rotary", 0) != 0;
  call.refuse_if(heads <= 0 || groups <= 0 || heads > kMaxHeads || heads % groups != 0,
                 "this number of heads");
  call.refuse_if(call.rank(0) != 3, "a query of this rank");
  call.refuse_if(call.has(1) != call.has(2), "a key without a value");
  call.refuse_if(call.has(3) != call.has(4), "a past key without a past value");
  call.refuse_if(!call.has(5) || !call.has(6), "a node without its lengths");
  call.refuse_if(call.has(12) || call.has(13), "a quantised cache (k_scale, v_scale)");
  call.refuse_if(call.has(14) != call.has(15), "one of the norms of queries and keys alone");
  call.refuse_if(call.integer("sliding_window_cache", 0) != 0, "sliding_window_cache");
  call.refuse_if(rotary && (!call.has(7) || !call.has(8)), "do_rotary without its tables");
  std::string body =
      "<num_heads, kv_num_heads, scale, softcap, do_rotary, rotary_interleaved, local_window_size, "
      "smooth_softmax, causal, kv_cache_bit_width, qk_output, k_quant_type, v_quant_type, "
      "sliding_window_cache, qk_norm_epsilon: float = 0.000001> (Query, Key, Value, PastKey, "
      "PastValue, "
      "LastPositions, TotalLength, Cos, Sin, GivenPositions, ScoreBias, Sink, KeyScale, "
      "ValueScale, "
      "QueryNorm, KeyNorm) => (Y, PresentKey, PresentValue, Scores) { "
      "Column = Constant<value_ints = [-1, 1]>() "
      "Two = Constant<value_ints = [2]>() ";
  body += kPastLength;
  body += grouped_projections(call, heads, groups) + head_norms_text(call);
  if (rotary) {
    body += call.has(9) ? "Positions = Cast<to = 7>(GivenPositions) "
                        : "Positions = Identity(LowestPosition) ";
    body += rotary_text(call, "QR", "QN") + rotary_text(call, "KR", "KN");
  } else {
    body += "QR = Identity(QN) KR = Identity(KN) ";
  }
  body += cache_text(call.has(3));
  body += visible_text(call.integer("causal", 1) != 0, call.integer("local_window_size", -1));
  body += shared_text(heads, groups) + scores_text(call) + softmax_text(call);
  body += call.integer("qk_output", 0) == 1 ? "Scores = CastLike(S1, Query) "
                                            : "Scores = CastLike(P, Query) ";
  return body + "VF = Cast<to = 1>(ValuesOfAll) OF = MatMul(P, VF) O = CastLike(OF, Query) " +
         joined_heads_text() + "}";
}

}  // namespace redfuser::onnx
