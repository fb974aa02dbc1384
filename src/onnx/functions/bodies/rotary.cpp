// com.microsoft.RotaryEmbedding and MRotaryEmbedding.
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// Y = X rotated by the tables; `tables` are the operator's inputs after X.
std::string rotation_text(const ExpansionCall& call, const std::string& tables) {
  const char* attributes =
      "interleaved: int = @interleaved, rotary_embedding_dim: int = @rotary_embedding_dim";
  if (call.rank(0) == 4) return fmt::format("Y = RotaryEmbedding<{}>(X, {}) ", attributes, tables);
  call.refuse_if(call.rank(0) != 3, "an input of this rank");
  if (call.integer("num_heads", 0) > 0) {
    return fmt::format("Y = RotaryEmbedding<{}, num_heads: int = @num_heads>(X, {}) ", attributes,
                       tables);
  }
  call.refuse_if(call.integer("rotary_embedding_dim", 0) > 0, "rotary_embedding_dim without heads");
  // The number of heads follows from the tables: they have a column for half a head's size.
  return fmt::format(R"(
    Half = Shape<start = 1, end = 2>(Cos)
    Two = Constant<value_ints = [2]>()
    Size = Mul(Half, Two)
    Rest = Constant<value_ints = [0, 0, -1]>()
    Heads = Concat<axis = 0>(Rest, Size)
    X4 = Reshape(X, Heads)
    XT = Transpose<perm = [0, 2, 1, 3]>(X4)
    YT = RotaryEmbedding<{}>(XT, {})
    Y4 = Transpose<perm = [0, 2, 1, 3]>(YT)
    Whole = Shape(X)
    Y = Reshape(Y4, Whole)
  )",
                     attributes, tables);
}

constexpr const char* kHead =
    "<interleaved: int = 0, num_heads: int = 0, rotary_embedding_dim: int = 0> "
    "(X, Positions, Cos, Sin) => (Y)";

void refuse_common(const ExpansionCall& call) {
  call.refuse_if(call.integer("is_packed_batching", 0) != 0, "is_packed_batching");
  call.refuse_if(call.real("scale", 1) != 1, "a scale");
}

// The position stream (0, 1, 2) of each column of the tables.
std::string streams(const ExpansionCall& call) {
  const std::vector<int64_t> sections = call.integers("mrope_section");
  call.refuse_if(sections.size() != 3, "an mrope_section of other than 3 sizes");
  int64_t total = 0;
  for (const int64_t section : sections) {
    call.refuse_if(section < 0 || section > 4096, "an mrope_section of this size");
    total += section;
  }
  std::string text;
  for (int64_t column = 0; column < total; ++column) {
    int64_t stream = column < sections[0] ? 0 : column < sections[0] + sections[1] ? 1 : 2;
    if (call.integer("mrope_layout", 0) != 0) {
      const int64_t offset = column % 3;
      stream = offset != 0 && column < 3 * sections[static_cast<size_t>(offset)] ? offset : 0;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", stream);
  }
  return text;
}

}  // namespace

std::string microsoft_rotary_embedding(const ExpansionCall& call) {
  refuse_common(call);
  std::string text;
  if (call.rank(1) == 2) {
    text = "At = Identity(Positions) ";
  } else {
    // The position of the first element.
    call.refuse_if(call.rank(1) != 1, "position_ids of this rank");
    text = fmt::format(
        "Batch = Shape<start = 0, end = 1>(X) Length = Shape<start = {0}, end = {1}>(X) "
        "FirstAxis = Constant<value_ints = [0]>() Length0 = Squeeze(Length, FirstAxis) "
        "From = Constant<value_int = 0>() Step = Constant<value_int = 1>() "
        "Steps = Range(From, Length0, Step) Row = Add(Steps, Positions) "
        "All = Concat<axis = 0>(Batch, Length) At = Expand(Row, All) ",
        call.rank(0) == 4 ? 2 : 1, call.rank(0) == 4 ? 3 : 2);
  }
  return fmt::format("{} {{ {} {} }}", kHead, text, rotation_text(call, "Cos, Sin, At"));
}

std::string microsoft_multimodal_rotary(const ExpansionCall& call) {
  refuse_common(call);
  call.refuse_if(call.rank(1) != 3, "position_ids of this rank");
  std::string text = fmt::format(
      "Streams = Constant<value_ints = [{}]>() One = Constant<value_int = 1>() "
      "FirstStream = Less(Streams, One) SecondStream = Equal(Streams, One) ",
      streams(call));
  for (const char* table : {"Cos", "Sin"}) {
    text += fmt::format(
        "{0}All = Gather({0}, Positions) "
        "{0}T, {0}H, {0}W = Split<axis = 0, num_outputs = 3>({0}All) "
        "{0}HW = Where(SecondStream, {0}H, {0}W) {0}THW = Where(FirstStream, {0}T, {0}HW) "
        "{0}First = Constant<value_ints = [0]>() {0}3 = Squeeze({0}THW, {0}First) ",
        table);
  }
  return fmt::format("{} {{ {} {} }}", kHead, text, rotation_text(call, "Cos3, Sin3"));
}

}  // namespace redfuser::onnx
