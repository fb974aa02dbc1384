// The inverse of matrices.
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

// Gauss-Jordan elimination of [X | 1] with the largest pivot of each column: row p of the largest
// |m_pk| with p ≥ k changes places with row k; then m ← m − (m_·k − e_k) ⊗ (m_k· / m_kk).
std::string microsoft_inverse(const ExpansionCall& call) {
  if (call.rank(0) < 2) call.fail("the input must have two dimensions or more");
  const bool wide = call.type(0) == ::onnx::TensorProto::DOUBLE;
  return fmt::format(R"((X) => (Y) {{
    Zero = Constant<value_int = 0>()
    One = Constant<value_int = 1>()
    Last = Constant<value_ints = [-1]>()
    Second = Constant<value_ints = [-2]>()
    None = Constant<value_float = -1.0>()
    Always = Constant<value = bool {{1}}>()
    XF = Cast<to = {}>(X)
    NoneF = CastLike(None, XF)
    Shape = Shape(XF)
    Size = Shape<start = -1>(XF)
    Count = Squeeze(Size)
    Rows = Range(Zero, Count, One)
    Column = Unsqueeze(Rows, Last)
    Diagonal = Equal(Column, Rows)
    Unit = CastLike(Diagonal, XF)
    Units = Expand(Unit, Shape)
    Start = Concat<axis = -1>(XF, Units)
    End = Loop<body = eliminate (int64 K, bool Go, {} M) => (bool Further, {} Next) {{
      Further = Identity(Go)
      Before = Gather<axis = -1>(M, K)
      Sizes = Abs(Before)
      Open = GreaterOrEqual(Rows, K)
      Candidates = Where(Open, Sizes, NoneF)
      Pivot = ArgMax<axis = -1, keepdims = 1>(Candidates)
      AtK = Equal(Rows, K)
      AtPivot = Equal(Rows, Pivot)
      Moved = Where(AtPivot, K, Rows)
      From = Where(AtK, Pivot, Moved)
      FromColumn = Unsqueeze(From, Last)
      Sides = Shape(M)
      FromAll = Expand(FromColumn, Sides)
      S = GatherElements<axis = -2>(M, FromAll)
      Row = Gather<axis = -2>(S, K)
      Corner = Gather<axis = -1>(Row, K)
      CornerU = Unsqueeze(Corner, Last)
      Scaled = Div(Row, CornerU)
      Factors = Gather<axis = -1>(S, K)
      UnitK = CastLike(AtK, Factors)
      Others = Sub(Factors, UnitK)
      OthersU = Unsqueeze(Others, Last)
      ScaledU = Unsqueeze(Scaled, Second)
      Step = Mul(OthersU, ScaledU)
      Next = Sub(S, Step)
    }}>(Count, Always, Start)
    Left, YF = Split<axis = -1, num_outputs = 2>(End)
    Y = CastLike(YF, X)
  }})",
                     wide ? 11 : 1, wide ? "double" : "float", wide ? "double" : "float");
}

}  // namespace redfuser::onnx
