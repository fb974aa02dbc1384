// com.microsoft.EmbedLayerNormalization and its quantised form.
#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {
namespace {

// Y, MaskIndex and Sum of the tables, which are Words, Places, SegmentTable, Gamma and Beta.
std::string embedding_text(const ExpansionCall& call, bool given_places) {
  std::string body = "Word = Gather(Words, Ids) Zero = Constant<value_ints = [0]>() ";
  if (given_places) {
    body += "Place = Gather(Places, PlaceIds) ";
  } else {
    body += "Length = Shape<start = 1, end = 2>(Ids) Place = Slice(Places, Zero, Length, Zero) ";
  }
  body += "Placed = Add(Word, Place) ";
  body += call.has(1) ? "Segment = Gather(SegmentTable, Segments) Sum = Add(Placed, Segment) "
                      : "Sum = Identity(Placed) ";
  body += "Y = LayerNormalization<axis = -1, epsilon: float = @epsilon>(Sum, Gamma, Beta) ";
  if (call.has(7)) {
    return body +
           "Last = Constant<value_ints = [1]>() Count = ReduceSum<keepdims = 0>(Mask, Last) "
           "MaskIndex = Cast<to = 6>(Count) ";
  }
  return body +
         "Batch = Shape<start = 0, end = 1>(Ids) "
         "MaskIndex = ConstantOfShape<value = int32[1] {0}>(Batch) ";
}

}  // namespace

std::string microsoft_embed_layer_norm(const ExpansionCall& call) {
  return fmt::format(
      "<epsilon: float = 0.000000000001, mask_index_type> "
      "(Ids, Segments, Words, Places, SegmentTable, Gamma, Beta, Mask, PlaceIds) "
      "=> (Y, MaskIndex, Sum) {{ {} }}",
      embedding_text(call, call.has(8)));
}

std::string microsoft_quantized_embed_layer_norm(const ExpansionCall& call) {
  std::string text;
  for (const char* table : {"Words", "Places", "SegmentTable", "Gamma", "Beta"}) {
    if (!call.has(1) && std::string(table) == "SegmentTable") continue;
    text += fmt::format("{0} = DequantizeLinear({0}Q, {0}Scale, {0}Zero) ", table);
  }
  return fmt::format(
      "<epsilon: float = 0.000000000001> "
      "(Ids, Segments, WordsQ, PlacesQ, SegmentTableQ, GammaQ, BetaQ, Mask, WordsScale, "
      "PlacesScale, SegmentTableScale, GammaScale, BetaScale, WordsZero, PlacesZero, "
      "SegmentTableZero, GammaZero, BetaZero) => (Y, MaskIndex) {{ {} {} }}",
      text, embedding_text(call, false));
}

}  // namespace redfuser::onnx
