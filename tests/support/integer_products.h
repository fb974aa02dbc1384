// Graphs that multiply 8-bit integers, and their inputs. Scales are powers of two, so that results
// of any type are exact.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"

namespace redfuser {

struct IntegerProductGraph {
  std::string name, text;
};

inline std::vector<IntegerProductGraph> integer_product_graphs() {
  const auto graph = [](const std::string& name, const std::string& inputs,
                        const std::string& output, const std::string& body) {
    return IntegerProductGraph{name, "<ir_version: 10, opset_import: [\"\" : 21]> g (" + inputs +
                                         ") => (" + output + " y) { " + body + " }"};
  };
  const std::string plain = "y = MatMulInteger(a, b)";
  const std::string zeros = "y = MatMulInteger(a, b, za, zb)";
  const std::string quantised = "y = QLinearMatMul(a, sa, za, b, sb, zb, sy, zy)";
  const std::string dynamic =
      "q, s, z = DynamicQuantizeLinear(x) p = MatMulInteger(q, b, z, zb) f = Cast<to = 1>(p) "
      "g = Mul(f, s) h = Mul(g, sb) i = Add(h, bias) y = Relu(i)";
  std::string weights;
  for (int i = 0; i < 64 * 24; ++i)
    weights += (i > 0 ? ", " : "") + std::to_string(i * 37 % 251 - 128);
  return {
      graph("signed", "int8[m, 131] a, int8[131, 77] b", "int32[m, 77]", plain),
      graph("unsigned", "uint8[m, 131] a, uint8[131, 77] b, uint8 za, uint8 zb", "int32[m, 77]",
            zeros),
      graph("whole_vectors", "uint8[m, 512] a, int8[512, 192] b, uint8 za, int8 zb",
            "int32[m, 192]", zeros),
      graph("words", "int8[m, 300] a, uint8[300, 84] b, int8 za, uint8 zb", "int32[m, 84]", zeros),
      graph("zeros_of_lines", "uint8[m, 256] a, int8[256, 160] b, uint8[m] za, int8[160] zb",
            "int32[m, 160]", zeros),
      graph("one_zero", "uint8[m, 1024] a, int8[1024, 72] b, uint8 za", "int32[m, 72]",
            "y = MatMulInteger(a, b, za)"),
      graph("weights_by_columns", "uint8[m, 208] a, int8[96, 208] w, uint8 za, int8[96] zb",
            "int32[m, 96]", "b = Transpose<perm = [1, 0]>(w) " + zeros),
      graph("rows_across", "int8[208, m] x, uint8[208, 96] b, int8 za, uint8 zb", "int32[m, 96]",
            "a = Transpose<perm = [1, 0]>(x) " + zeros),
      graph("constant", "uint8[m, 64] a", "int32[m, 24]",
            "b = Constant<value = int8[64, 24] {" + weights +
                "}>() za = Constant<value = uint8 {131}>() zb = Constant<value = int8 {-7}>() " +
                zeros),
      graph("batch", "uint8[3, m, 64] a, uint8[3, 64, 40] b, uint8 za, uint8 zb", "int32[3, m, 40]",
            zeros),
      graph("shared_weights", "uint8[2, m, 64] a, int8[64, 48] b, uint8 za", "int32[2, m, 48]",
            "y = MatMulInteger(a, b, za)"),
      graph("heads", "uint8[2, m, 4, 32] q, uint8[2, m, 4, 32] k, uint8 za, uint8 zb",
            "int32[2, 4, m, m]",
            "a = Transpose<perm = [0, 2, 1, 3]>(q) b = Transpose<perm = [0, 2, 3, 1]>(k) " + zeros),
      graph("open_depth", "uint8[64, m] a, int8[m, 50] b, uint8 za, int8[50] zb", "int32[64, 50]",
            zeros),
      graph("by_tensor",
            "uint8[m, 320] a, float sa, uint8 za, int8[320, 112] b, float sb, int8 zb, float sy, "
            "int8 zy",
            "int8[m, 112]", quantised),
      graph("by_column",
            "uint8[m, 321] a, float sa, uint8 za, int8[321, 111] b, float[111] sb, int8[111] zb, "
            "float sy, uint8 zy",
            "uint8[m, 111]", quantised),
      graph("dynamic",
            "float[m, 768] x, int8[768, 256] b, int8[256] zb, float[256] sb, float[256] bias",
            "float[m, 256]", dynamic),
      graph("half", "uint8[m, 128] a, int8[128, 64] b, uint8 za, float sa", "float16[m, 64]",
            "p = MatMulInteger(a, b, za) f = Cast<to = 1>(p) g = Mul(f, sa) y = Cast<to = 10>(g)"),
      graph("gated", "uint8[m, 256] a, int8[256, 128] b, int8[256, 128] c, uint8 za, int8 zb",
            "int32[m, 128]",
            "p = MatMulInteger(a, b, za, zb) q = MatMulInteger(a, c, za) y = Mul(p, q)"),
  };
}

// Bytes of all values; scales 2^-8 to 2^-5.
inline NamedTensors integer_product_inputs(const Model& model, int64_t m) {
  RandomOptions options;
  options.symbols["m"] = m;
  options.seed = static_cast<uint64_t>(m);
  NamedTensors inputs = random_inputs(model, options);
  std::mt19937 random(static_cast<unsigned>(m));
  for (auto& [name, tensor] : inputs) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.dtype() == DType::Int8 || tensor.dtype() == DType::UInt8) {
        tensor.as<uint8_t>()[i] = static_cast<uint8_t>(random());
      } else if (name[0] == 's') {
        tensor.as<float>()[i] = 1.0f / static_cast<float>(32 << random() % 4);
      }
    }
  }
  if (inputs.count("sy") > 0) inputs.at("sy").as<float>()[0] = 16;
  return inputs;
}

// The GPU has the integers of the CPU, and floats that one rounding may move.
inline void expect_integers_of_the_cpu(const Model& model, const std::vector<int64_t>& sizes) {
  const Program program = compile(model);
  Session gpu(program, {.device = "cuda"}), cpu(program);
  for (const int64_t m : sizes) {
    const NamedTensors inputs = integer_product_inputs(model, m);
    const NamedTensors got = gpu.run(inputs), expected = cpu.run(inputs);
    Tolerance tolerance;
    const bool rounds = expected.at("y").dtype() == DType::Float32;
    tolerance.relative = rounds ? 1e-6 : 0;
    tolerance.absolute = rounds ? 1e-5 : 0;
    for (const Comparison& comparison : compare(got, expected, tolerance)) {
      EXPECT_TRUE(comparison.passed) << m << ": " << describe(comparison);
    }
  }
}

inline std::string name_of_integers(const testing::TestParamInfo<IntegerProductGraph>& info) {
  return info.param.name;
}

}  // namespace redfuser
