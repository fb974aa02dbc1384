// com.microsoft operators on weights of few bits.
#include "onnx/functions/bodies/weights.h"

#include <cstdint>

#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// Products of two such sizes do not overflow.
bool is_size(int64_t size) { return size > 0 && size <= INT32_MAX; }

// `name` = ZeroF in the given shape, or the middle of the range where zero points are absent.
std::string zeros_text(const ExpansionCall& call, const char* name, const char* shape) {
  if (call.has(3)) return fmt::format("{} = Reshape(ZeroF, {}) ", name, shape);
  return fmt::format("{} = Constant<value_float = {}.0>() ", name,
                     1 << (call.integer("bits", 4) - 1));
}

// W [rows, depth] = Weights, scaled by blocks along the depth, in A's type. A depth that ends
// within a block is cut last, so that the whole blocks stay constants of any size.
std::string blocked_weights_text(const ExpansionCall& call, int64_t rows, int64_t depth,
                                 int64_t blocks) {
  return fmt::format(
      "Blocked = Constant<value_ints = [{0}, {1}, {2}]>() W3 = Reshape(Weights, Blocked) "
      "PerBlock = Constant<value_ints = [{0}, {1}, 1]>() Scale3 = Reshape(ScaleF, PerBlock) "
      "WF = Cast<to = 1>(W3) {4} Centred = Sub(WF, Zero3) Scaled = Mul(Centred, Scale3) "
      "Padded = Constant<value_ints = [{0}, -1]>() Wide = Reshape(Scaled, Padded) "
      "WideA = Cast<to = {5}>(Wide) "
      "Begin = Constant<value_ints = [0]>() End = Constant<value_ints = [{3}]>() "
      "Along = Constant<value_ints = [1]>() W = Slice(WideA, Begin, End, Along) ",
      rows, blocks, call.integer("block_size", 0), depth, zeros_text(call, "Zero3", "PerBlock"),
      call.type(0));
}

// The same if the input `g_idx` gives the block of each element of the depth.
std::string grouped_weights_text(const ExpansionCall& call, int64_t rows, int64_t depth,
                                 int64_t blocks) {
  return fmt::format(
      "Begin = Constant<value_ints = [0]>() End = Constant<value_ints = [{2}]>() "
      "Along = Constant<value_ints = [1]>() WU = Slice(Weights, Begin, End, Along) "
      "WF = Cast<to = 1>(WU) OfElement = Slice(Groups, Begin, End, Begin) "
      "PerBlock = Constant<value_ints = [{0}, {1}]>() Scale2 = Reshape(ScaleF, PerBlock) "
      "ScaleK = Gather<axis = 1>(Scale2, OfElement) {3} {4} "
      "Centred = Sub(WF, ZeroK) Scaled = Mul(Centred, ScaleK) W = Cast<to = {5}>(Scaled) ",
      rows, blocks, depth, zeros_text(call, "Zero2", "PerBlock"),
      call.has(3) ? "ZeroK = Gather<axis = 1>(Zero2, OfElement)" : "ZeroK = Identity(Zero2)",
      call.type(0));
}

}  // namespace

std::string unpacked_text(const std::string& result, const std::string& x, int64_t bits) {
  if (bits == 8) return fmt::format("{} = Identity({}) ", result, x);
  std::string shifts;
  for (int64_t p = 0; p < 8; p += bits) shifts += fmt::format("{}{}", p == 0 ? "" : ", ", p);
  return fmt::format(
      "{0}Last = Constant<value_ints = [-1]>() {0}U = Unsqueeze({1}, {0}Last) "
      "{0}By = Constant<value = uint8[{2}] {{{3}}}>() "
      "{0}Shifted = BitShift<direction = \"RIGHT\">({0}U, {0}By) "
      "{0}Mask = Constant<value = uint8 {{{4}}}>() {0}Parts = BitwiseAnd({0}Shifted, {0}Mask) "
      "{0}Outer = Shape<end = -1>({1}) {0}Whole = Concat<axis = 0>({0}Outer, {0}Last) "
      "{0} = Reshape({0}Parts, {0}Whole) ",
      result, x, 8 / bits, shifts, (1 << bits) - 1);
}

// Weights of 2, 4 or 8 bits in blocks along K, the first in the low bits of a byte.
std::string microsoft_matmul_nbits(const ExpansionCall& call) {
  const int64_t bits = call.integer("bits", 4), block = call.integer("block_size", 0);
  const int64_t rows = call.integer("N", 0), depth = call.integer("K", 0);
  call.refuse_if(bits != 2 && bits != 4 && bits != 8, "this number of bits");
  call.refuse_if(!is_size(block) || !is_size(rows) || !is_size(depth), "weights of this size");
  call.refuse_if(call.integer("weight_prepacked", 0) != 0, "weight_prepacked");
  const int64_t blocks = (depth + block - 1) / block, per_byte = 8 / bits;
  const bool packed_zeros = call.has(3) && call.type(3) == ::onnx::TensorProto::UINT8;
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
  body += "ScaleF = Cast<to = 1>(Scales) ";
  if (packed_zeros) {
    body += unpack("ZeroPoints", "Zeros", blocks) + "ZeroF = Cast<to = 1>(Zeros) ";
  } else if (call.has(3)) {
    body += "ZeroF = Cast<to = 1>(ZeroPoints) ";
  }
  body += call.has(4) ? grouped_weights_text(call, rows, depth, blocks)
                      : blocked_weights_text(call, rows, depth, blocks);
  // Weights have the type that is multiplied, as ONNX Runtime's do on a GPU.
  body += "WT = Transpose<perm = [1, 0]>(W) ";
  return body + (call.has(5) ? "P = MatMul(A, WT) Y = Add(P, Bias) }" : "Y = MatMul(A, WT) }");
}

// Rows are gathered before they are dequantised, so that a table stays as small as it is stored.
std::string microsoft_gather_block_quantized(const ExpansionCall& call) {
  const bool bytes = call.type(0) == ::onnx::TensorProto::UINT8;
  const int64_t rank = call.rank(0), block = call.integer("block_size", 128);
  const int64_t bits = bytes ? call.integer("bits", 4) : 8;
  const auto axis = [&](const char* name, int64_t fallback) {
    const int64_t given = call.integer(name, fallback);
    const int64_t wrapped = given < 0 ? given + rank : given;
    call.refuse_if(wrapped < 0 || wrapped >= rank, fmt::format("this {}", name));
    return wrapped;
  };
  const int64_t gathered = axis("gather_axis", 0), quantized = axis("quantize_axis", 1);
  call.refuse_if(bits != 2 && bits != 4 && bits != 8, "this number of bits");
  call.refuse_if(block <= 0, "a block of the whole axis");
  call.refuse_if(gathered == quantized, "gathering along the quantised axis");
  call.refuse_if(bytes && bits < 8 && quantized != rank - 1, "packed bytes along this axis");
  const int64_t at = quantized > gathered ? quantized + call.rank(1) - 1 : quantized;
  std::string text = fmt::format(
      "(X, Indices, Scales, ZeroPoints) => (Y) {{ "
      "XI = Gather<axis = {0}>(X, Indices) SI = Gather<axis = {0}>(Scales, Indices) {1} "
      "XF = Cast<to = 1>(XU) FirstAxis = Constant<value_ints = [0]>() "
      "Count = Shape<start = {2}, end = {3}>(XU) Count0 = Squeeze(Count, FirstAxis) "
      "From = Constant<value_int = 0>() Step = Constant<value_int = 1>() "
      "Elements = Range(From, Count0, Step) Block = Constant<value_int = {4}>() "
      "OfElement = Div(Elements, Block) SF = Cast<to = 1>(SI) "
      "SE = Gather<axis = {2}>(SF, OfElement) ",
      gathered, unpacked_text("XU", "XI", bits), at, at + 1, block);
  if (call.has(3)) {
    text += fmt::format(
        "ZI = Gather<axis = {0}>(ZeroPoints, Indices) {1} ZF = Cast<to = 1>(ZU) "
        "ZE = Gather<axis = {2}>(ZF, OfElement) ",
        gathered, unpacked_text("ZU", "ZI", bits), at);
  } else {
    text += fmt::format("ZE = Constant<value_float = {}.0>() ", bytes ? 1 << (bits - 1) : 0);
  }
  return text + "C = Sub(XF, ZE) YF = Mul(C, SE) Y = CastLike(YF, Scales) }";
}

// The values of four bits are those of a table, scaled by blocks of the flattened weights.
std::string microsoft_matmul_bnb4(const ExpansionCall& call) {
  const int64_t rows = call.integer("N", 0), depth = call.integer("K", 0);
  const int64_t block = call.integer("block_size", 0), type = call.integer("quant_type", -1);
  call.refuse_if(!is_size(block) || !is_size(rows) || !is_size(depth), "weights of this size");
  call.refuse_if(type != 0 && type != 1, "this quant_type");
  call.refuse_if(call.integer("training_mode", 0) != 0, "training_mode");
  const char* table =
      type == 0 ? "0.0, 0.005208333333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25, "
                  "-0.0, -0.005208333333, -0.66666667, -1.0, -0.33333333, -0.5, -0.16666667, -0.25"
                : "-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, "
                  "-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0, "
                  "0.07958029955625534, 0.16093020141124725, 0.24611230194568634, "
                  "0.33791524171829224, 0.44070982933044434, 0.5626170039176941, "
                  "0.7229568362236023, 1.0";
  return fmt::format(R"((A, B, Scales) => (Y) {{
    Table = Constant<value = float[16] {{{0}}}>()
    Pair = Constant<value_ints = [-1, 1]>()
    Line = Constant<value_ints = [-1]>()
    Bytes = Reshape(B, Pair)
    By = Constant<value = uint8[2] {{4, 0}}>()
    Shifted = BitShift<direction = "RIGHT">(Bytes, By)
    Low = Constant<value = uint8 {{15}}>()
    Parts = BitwiseAnd(Shifted, Low)
    Codes8 = Reshape(Parts, Line)
    From = Constant<value_ints = [0]>()
    To = Constant<value_ints = [{1}]>()
    CodesOf = Slice(Codes8, From, To, From)
    Codes = Cast<to = 7>(CodesOf)
    Values = Gather(Table, Codes)
    First = Constant<value_int = 0>()
    Count = Constant<value_int = {1}>()
    Step = Constant<value_int = 1>()
    Elements = Range(First, Count, Step)
    Block = Constant<value_int = {2}>()
    OfElement = Div(Elements, Block)
    ScaleF = Cast<to = 1>(Scales)
    Scale = Gather(ScaleF, OfElement)
    Scaled = Mul(Values, Scale)
    Matrix = Constant<value_ints = [{3}, {4}]>()
    W = Reshape(Scaled, Matrix)
    WT = {5}(W)
    AF = Cast<to = 1>(A)
    P = MatMul(AF, WT)
    Y = CastLike(P, A)
  }})",
                     table, rows * depth, block, rows, depth,
                     call.integer("transB", 1) != 0 ? "Transpose<perm = [1, 0]>" : "Identity");
}

}  // namespace redfuser::onnx
