// com.microsoft operators of exported decoders: grouped attention over a cache, packed weights,
// mixtures of experts, embeddings.
#include "base/error.h"
#include "onnx/expansion_call.h"

namespace redfuser {
namespace {

// Rotary tables may cover a part of the head only; their width says how much.
std::string rotary_text(const ExpansionCall& call, const char* result, const char* x) {
  const int64_t half = call.size(7, 1);
  return fmt::format(
      "{} = RotaryEmbedding<interleaved = {}, rotary_embedding_dim = {}>({}, Cos, Sin, Positions) ",
      result, call.integer("rotary_interleaved", 0), half > 0 ? 2 * half : 0, x);
}

// Q, K and V as [batch, heads, length, size], from three inputs or one.
std::string grouped_projections(const ExpansionCall& call, int64_t heads, int64_t groups) {
  const auto split = [](const char* result, const char* x, int64_t count) {
    return fmt::format(
        "{0}Shape = Constant<value_ints = [0, 0, {2}, -1]>() {0}4 = Reshape({1}, {0}Shape) "
        "{0} = Transpose<perm = [0, 2, 1, 3]>({0}4) ",
        result, x, count);
  };
  if (call.has(1))
    return split("Q", "Query", heads) + split("K", "Key", groups) + split("V", "Value", groups);
  return split("QKV", "Query", heads + 2 * groups) +
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
    LastPast = Sub(PastSize, One)
    OldSlotHigh = Min(Slots, LastPast)
    OldSlot = Max(OldSlotHigh, Zero)
    KHead = Shape<start = 0, end = 2>(KR)
    KTail = Shape<start = 3, end = 4>(KR)
    VTail = Shape<start = 3, end = 4>(V)
    KSlots = Concat<axis = 0>(KHead, Keys, KTail)
    VSlots = Concat<axis = 0>(KHead, Keys, VTail)
    KIndex = Expand(NewSlot4, KSlots)
    VIndex = Expand(NewSlot4, VSlots)
    NewKeys = GatherElements<axis = 2>(KR, KIndex)
    NewValues = GatherElements<axis = 2>(V, VIndex)
    OldKeys = Gather<axis = 2>(PastKey, OldSlot)
    OldValues = Gather<axis = 2>(PastValue, OldSlot)
    PresentKey = Where(IsNew, NewKeys, OldKeys)
    PresentValue = Where(IsNew, NewValues, OldValues)
  )";
}

// Key t is seen by query i if it is not later and not more than a window earlier.
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

std::string scores_text(const ExpansionCall& call) {
  std::string text =
      "KT = Transpose<perm = [0, 1, 3, 2]>(KeysOfAll) QF = Cast<to = 1>(QR) "
      "KF = Cast<to = 1>(KT) ";
  if (call.real("scale", 0) != 0) {
    text += "Scale = Constant<value_float: float = @scale>() ";
  } else {
    text +=
        "HeadSize = Shape<start = 3, end = 4>(QR) HeadSizeF = Cast<to = 1>(HeadSize) "
        "HeadRoot = Sqrt(HeadSizeF) OneF = Constant<value_float = 1.0>() "
        "Scale = Div(OneF, HeadRoot) ";
  }
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
  return text + "Never = Constant<value = float {-inf}>() S3 = Where(Seen4, S2, Never) ";
}

// A sink takes part in the sum of a row without a value.
std::string softmax_text(const ExpansionCall& call) {
  const bool sink = call.has(11);
  if (!sink && call.integer("smooth_softmax", 0) != 1) return "P = Softmax<axis = -1>(S3) ";
  std::string text =
      sink ? "SinkF = Cast<to = 1>(Sink) SinkShape = Constant<value_ints = [1, -1, 1, 1]>() "
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

}  // namespace

std::string microsoft_grouped_attention(const ExpansionCall& call) {
  const int64_t heads = call.integer("num_heads", 0), groups = call.integer("kv_num_heads", 0);
  const bool supported = heads > 0 && groups > 0 && heads % groups == 0 && call.rank(0) == 3 &&
                         call.has(1) == call.has(2) && call.has(3) == call.has(4) && call.has(5) &&
                         call.has(6) && !call.has(12) && !call.has(13) && !call.has(14) &&
                         !call.has(15) && call.integer("sliding_window_cache", 0) == 0 &&
                         call.integer("qk_output", 0) == 0 && !call.has_output(3);
  const bool rotary = call.integer("do_rotary", 0) != 0;
  if (!supported || (rotary && (!call.has(7) || !call.has(8)))) return "";
  std::string body =
      "<num_heads, kv_num_heads, scale, softcap, do_rotary, rotary_interleaved, local_window_size, "
      "smooth_softmax, causal, kv_cache_bit_width, qk_output, k_quant_type, v_quant_type, "
      "sliding_window_cache, qk_norm_epsilon> (Query, Key, Value, PastKey, PastValue, "
      "LastPositions, "
      "TotalLength, Cos, Sin, GivenPositions, ScoreBias, Sink) => (Y, PresentKey, PresentValue) { "
      "Column = Constant<value_ints = [-1, 1]>() "
      "Two = Constant<value_ints = [2]>() ";
  body += kPastLength;
  body += grouped_projections(call, heads, groups);
  if (rotary) {
    body += call.has(9) ? "Positions = Cast<to = 7>(GivenPositions) "
                        : "Positions = Identity(LowestPosition) ";
    body += rotary_text(call, "QR", "Q") + rotary_text(call, "KR", "K");
  } else {
    body += "QR = Identity(Q) KR = Identity(K) ";
  }
  body += cache_text(call.has(3));
  body += visible_text(call.integer("causal", 1) != 0, call.integer("local_window_size", -1));
  body += shared_text(heads, groups) + scores_text(call) + softmax_text(call);
  body += R"(
    VF = Cast<to = 1>(ValuesOfAll)
    O = MatMul(P, VF)
    OQ = CastLike(O, Query)
    OT = Transpose<perm = [0, 2, 1, 3]>(OQ)
    Flat = Constant<value_ints = [0, 0, -1]>()
    Y = Reshape(OT, Flat)
  })";
  return body;
}

// Weights of 2, 4 or 8 bits in blocks along K, the first in the low bits of a byte.
std::string microsoft_matmul_nbits(const ExpansionCall& call) {
  const int64_t bits = call.integer("bits", 4), block = call.integer("block_size", 0);
  const int64_t rows = call.integer("N", 0), depth = call.integer("K", 0);
  const bool supported = (bits == 2 || bits == 4 || bits == 8) && block > 0 && rows > 0 &&
                         depth > 0 && !call.has(4) && call.integer("weight_prepacked", 0) == 0;
  if (!supported) return "";
  const int64_t blocks = (depth + block - 1) / block, per_byte = 8 / bits;
  const bool packed_zeros = call.has(3) && call.type(3) == onnx::TensorProto::UINT8;
  std::string body =
      "<K, N, bits, block_size, accuracy_level, weight_prepacked> "
      "(A, B, Scales, ZeroPoints, Groups, Bias) => (Y) { ";
  // `x` of [rows, ...bytes] as numbers [rows, count].
  const auto unpack = [&](const std::string& x, const std::string& result, int64_t count) {
    std::string text = fmt::format(
        "{0}Flat = Constant<value_ints = [{1}, -1, 1]>() {0}Bytes = Reshape({2}, {0}Flat) ", result,
        rows, x);
    std::string parts;
    for (int64_t p = 0; p < per_byte; ++p) {
      text += fmt::format(
          "{0}By{1} = Constant<value = uint8 {{{2}}}>() "
          "{0}Shift{1} = BitShift<direction = \"RIGHT\">({0}Bytes, {0}By{1}) "
          "{0}Mask{1} = Constant<value = uint8 {{{3}}}>() "
          "{0}Part{1} = BitwiseAnd({0}Shift{1}, {0}Mask{1}) ",
          result, p, p * bits, (1 << bits) - 1);
      parts += fmt::format("{}{}Part{}", p == 0 ? "" : ", ", result, p);
    }
    text += fmt::format(
        "{0}All = Concat<axis = 2>({1}) {0}Line = Constant<value_ints = [{2}, -1]>() "
        "{0}Row = Reshape({0}All, {0}Line) {0}From = Constant<value_ints = [0]>() "
        "{0}To = Constant<value_ints = [{3}]>() {0}Axis = Constant<value_ints = [1]>() "
        "{0} = Slice({0}Row, {0}From, {0}To, {0}Axis) ",
        result, parts, rows, count);
    return text;
  };
  body += unpack("B", "Weights", blocks * block);
  body += fmt::format(
      "Blocked = Constant<value_ints = [{0}, {1}, {2}]>() W3 = Reshape(Weights, Blocked) "
      "PerBlock = Constant<value_ints = [{0}, {1}, 1]>() ScaleF = Cast<to = 1>(Scales) "
      "Scale3 = Reshape(ScaleF, PerBlock) WF = Cast<to = 1>(W3) ",
      rows, blocks, block);
  if (packed_zeros) {
    body += unpack("ZeroPoints", "Zeros", blocks) +
            "ZeroF = Cast<to = 1>(Zeros) Zero3 = Reshape(ZeroF, PerBlock) ";
  } else if (call.has(3)) {
    body += "ZeroF = Cast<to = 1>(ZeroPoints) Zero3 = Reshape(ZeroF, PerBlock) ";
  } else {
    body += fmt::format("Zero3 = Constant<value_float = {}.0>() ", 1 << (bits - 1));
  }
  body += fmt::format(
      "Centred = Sub(WF, Zero3) Scaled = Mul(Centred, Scale3) "
      "Padded = Constant<value_ints = [{0}, -1]>() Wide = Reshape(Scaled, Padded) "
      "Begin = Constant<value_ints = [0]>() End = Constant<value_ints = [{1}]>() "
      "Along = Constant<value_ints = [1]>() W = Slice(Wide, Begin, End, Along) "
      "WT = Transpose<perm = [1, 0]>(W) AF = Cast<to = 1>(A) P = MatMul(AF, WT) ",
      rows, depth);
  body += call.has(5) ? "BiasF = Cast<to = 1>(Bias) YF = Add(P, BiasF) " : "YF = Identity(P) ";
  return body + "Y = CastLike(YF, A) }";
}

std::string microsoft_embed_layer_norm(const ExpansionCall& call) {
  std::string body =
      "<epsilon: float = 0.000000000001, mask_index_type> "
      "(Ids, Segments, Words, Places, SegmentTable, Gamma, Beta, Mask, PlaceIds) "
      "=> (Y, MaskIndex, Sum) { Word = Gather(Words, Ids) Zero = Constant<value_ints = [0]>() ";
  if (call.has(8)) {
    body += "Place = Gather(Places, PlaceIds) ";
  } else {
    body += "Length = Shape<start = 1, end = 2>(Ids) Place = Slice(Places, Zero, Length, Zero) ";
  }
  body += "Placed = Add(Word, Place) ";
  body += call.has(1) ? "Segment = Gather(SegmentTable, Segments) Sum = Add(Placed, Segment) "
                      : "Sum = Identity(Placed) ";
  body += "Y = LayerNormalization<axis = -1, epsilon: float = @epsilon>(Sum, Gamma, Beta) ";
  if (call.has(7)) {
    body +=
        "Last = Constant<value_ints = [1]>() Count = ReduceSum<keepdims = 0>(Mask, Last) "
        "MaskIndex = Cast<to = 6>(Count) ";
  } else {
    body +=
        "Batch = Shape<start = 0, end = 1>(Ids) "
        "MaskIndex = ConstantOfShape<value = int32[1] {0}>(Batch) ";
  }
  return body + "}";
}

// Every expert is computed for every token and weighted by its routing, which is zero for those
// that are not chosen.
std::string microsoft_moe(const ExpansionCall& call) {
  const std::string activation = call.text("activation_type", "relu");
  const bool known = activation == "relu" || activation == "gelu" || activation == "silu" ||
                     activation == "identity" || activation == "swiglu";
  if (!known || call.integer("use_sparse_mixer", 0) != 0) return "";
  const bool swiglu = activation == "swiglu";
  const int64_t fusion = call.integer("swiglu_fusion", 0);
  if (swiglu && fusion == 0) return "";
  std::string body = fmt::format(
      "<activation_type, k, use_sparse_mixer, normalize_routing_weights, swiglu_fusion, "
      "swiglu_limit: float = 0.0, activation_alpha: float = 1.0, activation_beta: float = 0.0> "
      "(X, Router, W1, B1, W2, B2, W3, B3) => (Y) {{ "
      "Width = Shape<start = -1>(X) MinusOne = Constant<value_ints = [-1]>() One = "
      "Constant<value_ints = [1]>() "
      "Zero = Constant<value_ints = [0]>() Two = Constant<value_ints = [2]>() "
      "Flat = Concat<axis = 0>(MinusOne, Width) X2 = Reshape(X, Flat) RouterF = Cast<to = "
      "1>(Router) "
      "Probabilities = Softmax<axis = -1>(RouterF) K = Constant<value_ints = [{}]>() "
      "Best, Chosen = TopK<axis = -1>(Probabilities, K) ",
      call.integer("k", 1));
  body += call.integer("normalize_routing_weights", 0) != 0
              ? "BestSum = ReduceSum(Best, One) Shares = Div(Best, BestSum) "
              : "Shares = Identity(Best) ";
  // Routing [tokens, experts]: the share where the expert is among the chosen.
  body += R"(
    Experts = Shape<start = 1, end = 2>(Router)
    Experts0 = Squeeze(Experts, Zero)
    Zero0 = Constant<value_int = 0>()
    One0 = Constant<value_int = 1>()
    Numbers = Range(Zero0, Experts0, One0)
    Chosen3 = Unsqueeze(Chosen, Two)
    Is = Equal(Chosen3, Numbers)
    IsF = Cast<to = 1>(Is)
    Shares3 = Unsqueeze(Shares, Two)
    Parts = Mul(IsF, Shares3)
    Routing = ReduceSum<keepdims = 0>(Parts, One)
    XF = Cast<to = 1>(X2)
    X3 = Unsqueeze(XF, Zero)
    W1F = Cast<to = 1>(W1)
    W1T = Transpose<perm = [0, 2, 1]>(W1F)
    H0 = MatMul(X3, W1T)
  )";
  const auto biased = [&](int input, const char* bias, const char* x, const char* result) {
    if (!call.has(input)) return fmt::format("{} = Identity({}) ", result, x);
    return fmt::format("{0}F = Cast<to = 1>({0}) {0}3 = Unsqueeze({0}F, One) {2} = Add({1}, {0}3) ",
                       bias, x, result);
  };
  body += biased(3, "B1", "H0", "H1");
  if (activation == "relu") body += "H2 = Relu(H1) ";
  if (activation == "gelu") body += "H2 = Gelu(H1) ";
  if (activation == "silu") body += "HS = Sigmoid(H1) H2 = Mul(H1, HS) ";
  if (activation == "identity") body += "H2 = Identity(H1) ";
  if (swiglu) {
    // Gate and value alternate (1) or follow each other (2).
    body += fusion == 1 ? "Most = Constant<value_ints = [9223372036854775807]>() "
                          "Gate0 = Slice(H1, Zero, Most, Two, Two) "
                          "Linear0 = Slice(H1, One, Most, Two, Two) "
                        : "Gate0, Linear0 = Split<axis = 2, num_outputs = 2>(H1) ";
    body += call.has_attribute("swiglu_limit")
                ? "Limit = Constant<value_float: float = @swiglu_limit>() NegLimit = Neg(Limit) "
                  "Gate = Min(Gate0, Limit) LinearLow = Max(Linear0, NegLimit) "
                  "Linear = Min(LinearLow, Limit) "
                : "Gate = Identity(Gate0) Linear = Identity(Linear0) ";
    body +=
        "Alpha = Constant<value_float: float = @activation_alpha>() "
        "BetaC = Constant<value_float: float = @activation_beta>() GA = Mul(Gate, Alpha) "
        "GS = Sigmoid(GA) GG = Mul(Gate, GS) LB = Add(Linear, BetaC) H2 = Mul(GG, LB) ";
  }
  if (call.has(6)) {
    body += "W3F = Cast<to = 1>(W3) W3T = Transpose<perm = [0, 2, 1]>(W3F) U0 = MatMul(X3, W3T) ";
    body += biased(7, "B3", "U0", "U1") + "H3 = Mul(H2, U1) ";
  } else {
    body += "H3 = Identity(H2) ";
  }
  body += "W2F = Cast<to = 1>(W2) W2T = Transpose<perm = [0, 2, 1]>(W2F) Z0 = MatMul(H3, W2T) ";
  body += biased(5, "B2", "Z0", "Z1");
  return body + R"(
    RoutingT = Transpose<perm = [1, 0]>(Routing)
    Routing3 = Unsqueeze(RoutingT, Two)
    Weighted = Mul(Z1, Routing3)
    Mixed = ReduceSum<keepdims = 0>(Weighted, Zero)
    MixedX = CastLike(Mixed, X)
    Whole = Shape(X)
    Y = Reshape(MixedX, Whole)
  })";
}

}  // namespace redfuser
