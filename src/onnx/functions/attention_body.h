// Nodes that the bodies of the attention operators share, as text. Values are named as the
// functions say; an operator's heads lie in [batch, heads, length, size].
#pragma once

#include <cstdint>
#include <string>

#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

inline constexpr int64_t kMaxHeads = 1 << 20;

// `result` = x of [batch, length, heads * size] by heads.
std::string heads_text(const std::string& result, const std::string& x, int64_t heads);
// Y = O, which lies by heads, as [batch, length, heads * size].
std::string joined_heads_text();
// Scale, a float: the attribute `scale` or, where that is absent or 0, 1 / sqrt(size of Q's heads).
std::string scale_text(const ExpansionCall& call);

// What is added to the scores and hidden of them, by the number of each node input.
struct AttentionScoreInputs {
  int mask = -1;  // int32: 0 hides a key, or lengths; its rank says which
  int bias = -1;
  bool past = false;  // PastKey comes before the new keys
};
// Y = softmax(Scale * Q Keys' + ScoreBias and the mask) Values, in the type of Q. The inputs are
// named PaddingMask, ScoreBias and PastKey; ScoreMatrix is what the softmax is taken of.
std::string masked_attention_text(const ExpansionCall& call, const AttentionScoreInputs& terms);

}  // namespace redfuser::onnx
