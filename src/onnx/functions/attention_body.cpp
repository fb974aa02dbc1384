#include "onnx/functions/attention_body.h"

namespace redfuser::onnx {
namespace {

// Keep [batch or 1, 1, length or 1, keys]: true for visible keys.
std::string kept_keys_text(const ExpansionCall& call, int mask) {
  switch (call.rank(mask)) {
    case 1:
      // Ends of the keys, which may be followed by their starts.
      call.refuse_if(
          call.size(mask, 0) > 0 && call.size(0, 0) > 0 && call.size(mask, 0) > 2 * call.size(0, 0),
          "a mask of cumulated lengths (3 * batch_size + 2)");
      return R"(
        MaskBatch = Shape<start = 0, end = 1>(Keys)
        MaskTwo = Constant<value_ints = [2]>()
        MaskZero = Constant<value_ints = [0]>()
        MaskTwice = Mul(MaskBatch, MaskTwo)
        NoStarts = ConstantOfShape<value = int32[1] {0}>(MaskBatch)
        EndsAndStarts = Concat<axis = 0>(PaddingMask, NoStarts)
        KeyEnds = Slice(EndsAndStarts, MaskZero, MaskBatch, MaskZero)
        KeyStarts = Slice(EndsAndStarts, MaskBatch, MaskTwice, MaskZero)
        MaskAxes = Constant<value_ints = [1, 2, 3]>()
        KeyEnds4 = Unsqueeze(KeyEnds, MaskAxes)
        KeyStarts4 = Unsqueeze(KeyStarts, MaskAxes)
        KeyNumbers = Cast<to = 6>(KeyAt)
        BeforeEnd = Less(KeyNumbers, KeyEnds4)
        AfterStart = GreaterOrEqual(KeyNumbers, KeyStarts4)
        Keep = And(BeforeEnd, AfterStart)
      )";
    case 2:
      return "KeepPlain = Greater(PaddingMask, NoKey) MaskAxes = Constant<value_ints = [1, 2]>() "
             "Keep = Unsqueeze(KeepPlain, MaskAxes) ";
    case 3:
      return "KeepPlain = Greater(PaddingMask, NoKey) MaskAxes = Constant<value_ints = [1]>() "
             "Keep = Unsqueeze(KeepPlain, MaskAxes) ";
    default:
      // A square mask of the longest length, of which the rows of the queries are used.
      call.refuse_if(call.rank(mask) != 4, "a mask of this rank");
      return R"(
        MaskAxes = Constant<value_ints = [2, 3]>()
        MaskFirst = Constant<value_ints = [0]>()
        MaskOne = Constant<value_ints = [1]>()
        MaskPast = Reshape(PastSize0, MaskOne)
        MaskLast = Add(MaskPast, QuerySize)
        MaskFrom = Concat<axis = 0>(MaskPast, MaskFirst)
        MaskTo = Concat<axis = 0>(MaskLast, KeySize)
        MaskPart = Slice(PaddingMask, MaskFrom, MaskTo, MaskAxes)
        Keep = Greater(MaskPart, NoKey)
      )";
  }
}

}  // namespace

std::string heads_text(const std::string& result, const std::string& x, int64_t heads) {
  return fmt::format(
      "{0}Shape = Constant<value_ints = [0, 0, {2}, -1]>() {0}4 = Reshape({1}, {0}Shape) "
      "{0} = Transpose<perm = [0, 2, 1, 3]>({0}4) ",
      result, x, heads);
}

std::string joined_heads_text() {
  return "OT = Transpose<perm = [0, 2, 1, 3]>(O) Flat = Constant<value_ints = [0, 0, -1]>() "
         "Y = Reshape(OT, Flat) ";
}

std::string scale_text(const ExpansionCall& call) {
  if (call.real("scale", 0) != 0) return "Scale = Constant<value_float: float = @scale>() ";
  return "HeadSize = Shape<start = 3, end = 4>(Q) HeadSizeF = Cast<to = 1>(HeadSize) "
         "HeadRoot = Sqrt(HeadSizeF) OneF = Constant<value_float = 1.0>() "
         "Scale = Div(OneF, HeadRoot) ";
}

// Scores are fp32: added to a mask's fill in 16 bits they would be lost.
std::string masked_attention_text(const ExpansionCall& call, const AttentionScoreInputs& terms) {
  std::string text = scale_text(call) + R"(
    ScaleQ = CastLike(Scale, Q)
    QS = Mul(Q, ScaleQ)
    KT = Transpose<perm = [0, 1, 3, 2]>(Keys)
    Products = MatMul(QS, KT)
    Wide = Cast<to = 1>(Products)
    ScalarAxis = Constant<value_ints = [0]>()
    From = Constant<value_int = 0>()
    Step = Constant<value_int = 1>()
    KeySize = Shape<start = 2, end = 3>(Keys)
    KeySize0 = Squeeze(KeySize, ScalarAxis)
    KeyAt = Range(From, KeySize0, Step)
    QuerySize = Shape<start = 2, end = 3>(Q)
    QuerySize0 = Squeeze(QuerySize, ScalarAxis)
    NoKey = Constant<value = int32 {0}>()
  )";
  text += terms.past ? "PastSize = Shape<start = 2, end = 3>(PastKey) "
                       "PastSize0 = Squeeze(PastSize, ScalarAxis) "
                     : "PastSize0 = Identity(From) ";
  text += terms.bias >= 0 && call.has(terms.bias)
              ? "WideBias = Cast<to = 1>(ScoreBias) Biased = Add(Wide, WideBias) "
              : "Biased = Identity(Wide) ";
  if (terms.mask >= 0 && call.has(terms.mask)) {
    text += kept_keys_text(call, terms.mask) + R"(
      Off = Constant<value_float: float = @mask_filter_value>()
      On = Constant<value_float = 0.0>()
      Padding = Where(Keep, On, Off)
      Padded = Add(Biased, Padding)
    )";
  } else {
    text += "Padded = Identity(Biased) ";
  }
  if (call.integer("unidirectional", 0) != 0) {
    text += R"(
      QuerySteps = Range(From, QuerySize0, Step)
      QueryAt = Add(QuerySteps, PastSize0)
      LastAxis = Constant<value_ints = [-1]>()
      QueryAtColumn = Unsqueeze(QueryAt, LastAxis)
      Seen = LessOrEqual(KeyAt, QueryAtColumn)
      Never = Constant<value = float {-inf}>()
      Scores = Where(Seen, Padded, Never)
    )";
  } else {
    text += "Scores = Identity(Padded) ";
  }
  return text +
         "ScoreMatrix = CastLike(Scores, Q) PWide = Softmax<axis = -1>(Scores) "
         "P = CastLike(PWide, Q) O = MatMul(P, Values) " +
         joined_heads_text();
}

}  // namespace redfuser::onnx
