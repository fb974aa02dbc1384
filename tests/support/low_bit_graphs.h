// Graphs with floats of 8 bits and fewer, and the numbers that decide how they round.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/low_bit.h"

namespace redfuser {

struct LowBitGraph {
  std::string name, text;
};

struct LowBitType {
  DType dtype;
  const char* name;
  int number;  // in ONNX
};
inline constexpr LowBitType kLowBitTypes[] = {
    {DType::Float8E4M3FN, "float8e4m3fn", 17}, {DType::Float8E4M3FNUZ, "float8e4m3fnuz", 18},
    {DType::Float8E5M2, "float8e5m2", 19},     {DType::Float8E5M2FNUZ, "float8e5m2fnuz", 20},
    {DType::Float4E2M1, "float4e2m1", 23},
};

// The ties between neighbouring values, their neighbours, special values, and floats of every
// exponent.
inline std::vector<float> low_bit_floats(DType dtype) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> floats = {0, 0x1p-149f, 0x1p-127f, 0x1p-126f, kInfinity, 3.4e38f, 464, 61440};
  for (unsigned code = 0; code < 255; ++code) {
    const float low = low_bit_value(dtype, static_cast<uint8_t>(code));
    const float high = low_bit_value(dtype, static_cast<uint8_t>(code + 1));
    const float tie = low / 2 + high / 2;
    if (!std::isfinite(tie)) continue;
    for (const float x : {low, tie}) {
      floats.insert(floats.end(), {x, std::nextafter(x, -kInfinity), std::nextafter(x, kInfinity)});
    }
  }
  const float largest = low_bit_maximum(dtype);
  for (float x = largest / 2; x < 2 * largest && std::isfinite(x); x *= 1.0009765625f) {
    floats.push_back(x);
  }
  for (float x = 0x1p-140f; x < 0x1p127f; x *= 1.0021f) floats.push_back(x);
  const size_t positive = floats.size();
  for (size_t i = 0; i < positive; ++i) floats.push_back(-floats[i]);
  floats.push_back(std::numeric_limits<float>::quiet_NaN());
  return floats;
}

// Over float[m, 64] x, and scales s where the graph has them: float[m, 64], [64], [m, 2] or one.
inline std::vector<LowBitGraph> low_bit_graphs() {
  std::vector<LowBitGraph> graphs;
  for (const LowBitType& type : kLowBitTypes) {
    const auto add = [&](const char* name, const char* inputs, const std::string& outputs,
                         const std::string& nodes) {
      graphs.push_back(
          {fmt::format("{}_{}", name, type.name),
           fmt::format("<ir_version: 11, opset_import: [\"\" : 23]> g (float[m, 64] x{}) => ({}) "
                       "{{ {} }}",
                       inputs, outputs, nodes)});
    };
    const int to = type.number;
    const std::string q = fmt::format("{}[m, 64] q", type.name), qy = q + ", float[m, 64] y";
    add("saturated", "", qy, fmt::format("q = Cast<to = {}>(x) y = Cast<to = 1>(q)", to));
    add("unsaturated", "", qy,
        fmt::format("q = Cast<to = {}, saturate = 0>(x) y = Cast<to = 1>(q)", to));
    add("in_registers", "", "float16[m, 64] y",
        fmt::format("q = Cast<to = {}>(x) y = Cast<to = 10>(q)", to));
    add("to_others", "", "bool[m, 64] a, int32[m, 64] b, double[m, 64] c, bfloat16[m, 64] d",
        fmt::format("q = Cast<to = {}>(x) a = Cast<to = 9>(q) b = Cast<to = 6>(q) "
                    "c = Cast<to = 11>(q) d = Cast<to = 16>(q)",
                    to));
    add("between", "", "float8e5m2[m, 64] y",
        fmt::format("q = Cast<to = {}>(x) y = Cast<to = 19>(q)", to));
    const auto quantized = [&](const char* name, const char* scale, const char* attributes) {
      add(name, scale, qy,
          fmt::format("q = QuantizeLinear<{0}output_dtype = {1}>(x, s) "
                      "y = DequantizeLinear<{0}axis = 1>(q, s)",
                      attributes, to));
    };
    quantized("by_tensor", ", float s", "");
    quantized("by_column", ", float[64] s", "");
    quantized("by_block", ", float[m, 2] s", "block_size = 32, ");
    add("by_token", "", q + ", float[m, 1] s",
        fmt::format("o = Constant<value = int64[1] {{1}}>() a = Abs(x) m = ReduceMax(a, o) "
                    "w = Constant<value = float {{{}}}>() s = Div(m, w) d = Div(x, s) "
                    "q = Cast<to = {}>(d)",
                    low_bit_maximum(type.dtype), to));
    add("transposed", "", fmt::format("{}[64, m] y", type.name),
        fmt::format("q = Cast<to = {}>(x) y = Transpose<perm = [1, 0]>(q)", to));
  }
  return graphs;
}

}  // namespace redfuser
