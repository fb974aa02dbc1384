// Nodes that the bodies of the attention operators share, as text. Names of values are given with
// each function; heads have the layout [batch, heads, length, size].
#pragma once

#include <cstdint>
#include <string>

#include "onnx/functions/expansion_call.h"

namespace redfuser::onnx {

inline constexpr int64_t kMaxHeads = 1 << 20;

// `result` = x of [batch, length, heads * size], split into heads.
std::string heads_text(const std::string& result, const std::string& x, int64_t heads);
// Y = the heads O, joined to [batch, length, heads * size].
std::string joined_heads_text();
// Scale, a float: the attribute `scale`, or 1 / sqrt(size of Q's heads) if that is absent or 0.
std::string scale_text(const ExpansionCall& call);

// The node inputs that are added to the scores or mask them, by number.
struct AttentionScoreInputs {
  int mask = -1;  // int32, by its rank: a mask whose 0 hides a key, or lengths
  int bias = -1;
  bool past = false;  // PastKey precedes the new keys
};
// Y = softmax(Scale * Q Keys' + ScoreBias and the mask) Values, in the type of Q. The inputs are
// named PaddingMask, ScoreBias and PastKey; ScoreMatrix is the argument of the softmax.
std::string masked_attention_text(const ExpansionCall& call, const AttentionScoreInputs& terms);

}  // namespace redfuser::onnx
