// Weights of few bits.
#pragma once

#include <cstdint>
#include <string>

namespace redfuser::onnx {

// `result` = the numbers of 2, 4 or 8 bits packed in the bytes of x along the last dimension, the
// first one in the low bits.
std::string unpacked_text(const std::string& result, const std::string& x, int64_t bits);

}  // namespace redfuser::onnx
