// Weights of few bits.
#pragma once

#include <cstdint>
#include <string>

namespace redfuser::onnx {

// `result` = the numbers of 2, 4 or 8 bits that the bytes of x hold along the last dimension, the
// first in the low bits.
std::string unpacked_text(const std::string& result, const std::string& x, int64_t bits);

}  // namespace redfuser::onnx
