// Products with constant weights of few bits, in the forms that files have.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "redfuser/redfuser.h"

namespace redfuser {

struct WeightCodeGraph {
  std::string name, text;
  int bits = 4;        // of a code
  int64_t block = 32;  // elements of a scale
  int64_t lines = 0, depth = 0;
  bool zeros = false;  // each block has a zero point
};

// Numbers as the text of a tensor's elements.
inline std::string numbers_text(int64_t count, int low, int high, unsigned seed, double scale = 1) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> draw(low, high);
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    const int drawn = draw(random);
    text += i > 0 ? ", " : "";
    text += scale == 1 ? std::to_string(drawn) : std::to_string(drawn * scale);
  }
  return text;
}

inline std::string constant_text(const std::string& name, const std::string& type,
                                 const std::string& numbers) {
  return name + " = Constant<value = " + type + " {" + numbers + "}>() ";
}

// `to` = the floats `from` in the type.
inline std::string cast_text(const std::string& to, const std::string& from,
                             const std::string& type) {
  const char* const number = type == "float" ? "1" : type == "float16" ? "10" : "16";
  return to + " = Cast<to = " + number + ">(" + from + ") ";
}

// com.microsoft.MatMulNBits of [m, depth] in `type` with `lines` columns.
inline WeightCodeGraph nbits_graph(const std::string& name, const std::string& type, int bits,
                                   int64_t block, int64_t lines, int64_t depth, bool zeros,
                                   bool bias = false) {
  const int64_t blocks = (depth + block - 1) / block, bytes = block * bits / 8;
  const auto size = [](int64_t n) { return std::to_string(n); };
  std::string body =
      constant_text("q", "uint8[" + size(lines) + "," + size(blocks) + "," + size(bytes) + "]",
                    numbers_text(lines * blocks * bytes, 0, 255, 1));
  body += constant_text("sf", "float[" + size(lines) + "," + size(blocks) + "]",
                        numbers_text(lines * blocks, 16, 31, 2, 1.0 / 1024)) +
          cast_text("s", "sf", type);
  std::string inputs = "x, q, s";
  if (zeros) {
    const int64_t packed = (blocks * bits + 7) / 8;
    body += constant_text("z", "uint8[" + size(lines) + "," + size(packed) + "]",
                          numbers_text(lines * packed, 0, 255, 3));
    inputs += ", z";
  }
  if (bias) {
    body += constant_text("bf", "float[" + size(lines) + "]", numbers_text(lines, -9, 9, 4)) +
            cast_text("b", "bf", type);
    inputs += zeros ? ", , b" : ", , , b";
  }
  body += "y = com.microsoft.MatMulNBits<K = " + size(depth) + ", N = " + size(lines) +
          ", bits = " + std::to_string(bits) + ", block_size = " + size(block) + ">(" + inputs +
          ")";
  return {name,
          "<ir_version: 10, opset_import: [\"\" : 21, \"com.microsoft\" : 1]> g (" + type + "[m, " +
              size(depth) + "] x) => (" + type + "[m, " + size(lines) + "] y) { " + body + " }",
          bits,
          block,
          lines,
          depth,
          zeros};
}

inline WeightCodeGraph matmul_graph(const std::string& name, const std::string& type,
                                    const std::string& weights, int bits, int64_t block) {
  return {name,
          "<ir_version: 10, opset_import: [\"\" : 21]> g (" + type + "[m, 128] x) => (" + type +
              "[m, 96] y) { " + weights + " y = MatMul(x, w) }",
          bits,
          block,
          96,
          128,
          false};
}

inline std::vector<WeightCodeGraph> weight_code_graphs() {
  const std::string channel_scales =
      constant_text("sf", "float[96]", numbers_text(96, 16, 31, 5, 1.0 / 1024));
  const std::string block_scales =
      constant_text("s", "float[4, 96]", numbers_text(4 * 96, 16, 31, 6, 1.0 / 1024));
  return {
      nbits_graph("half", "float16", 4, 32, 96, 128, false),
      nbits_graph("half_zeros", "float16", 4, 32, 96, 256, true),
      nbits_graph("half_short_blocks", "float16", 4, 16, 77, 144, true),
      nbits_graph("half_long_blocks", "float16", 4, 128, 100, 384, false, true),
      nbits_graph("half_partial_block", "float16", 4, 64, 96, 100, true),
      nbits_graph("bytes", "float16", 8, 32, 80, 160, true),
      nbits_graph("bfloat", "bfloat16", 4, 32, 96, 128, true),
      nbits_graph("bfloat_bytes", "bfloat16", 8, 64, 96, 128, false),
      nbits_graph("float", "float", 4, 32, 96, 128, true),
      nbits_graph("float_bytes", "float", 8, 16, 65, 96, false, true),
      matmul_graph("channels", "float16",
                   channel_scales + cast_text("s", "sf", "float16") +
                       constant_text("q", "int8[128, 96]", numbers_text(128 * 96, -128, 127, 7)) +
                       "w = DequantizeLinear<axis = 1>(q, s)",
                   8, 128),
      matmul_graph("blocked", "float",
                   block_scales +
                       constant_text("q", "int8[128, 96]", numbers_text(128 * 96, -8, 7, 8)) +
                       "w = DequantizeLinear<axis = 0, block_size = 32>(q, s)",
                   4, 32),
      matmul_graph("by_hand", "float",
                   channel_scales + constant_text("z", "float", "3") +
                       constant_text("q", "uint8[128, 96]", numbers_text(128 * 96, 0, 15, 9)) +
                       "f = Cast<to = 1>(q) d = Sub(f, z) w = Mul(sf, d)",
                   4, 128),
  };
}

inline std::string name_of_codes(const ::testing::TestParamInfo<WeightCodeGraph>& info) {
  return info.param.name;
}

}  // namespace redfuser
