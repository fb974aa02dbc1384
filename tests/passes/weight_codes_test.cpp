// Constant matrices of few bits: their codes give the constants again, bit for bit, also as they
// are stored for a GPU.
#include <cmath>

#include "passes/weights/store_codes.h"
#include "runtime/program/compiled_program.h"
#include "support/graph_values.h"
#include "support/weight_code_graphs.h"

namespace redfuser::testing {
namespace {

// The constant with codes that the model's product reads.
const ir::Value* coded_value(const ir::Graph& graph) {
  for (const ir::Value& value : graph.values) {
    if (value.codes) return &value;
  }
  return nullptr;
}

// (code − zero) · scale, rounded to the value's type.
double element(const ir::Value& value, int64_t code, int64_t zero, double scale) {
  const double number = static_cast<double>(code - zero) * scale;
  return values_of(make_tensor(value.dtype, Dims{1}, std::vector<double>{number}))[0];
}

std::shared_ptr<const ir::Graph> graph_of(const WeightCodeGraph& c) {
  CompileOptions options;
  options.certify = false;
  return compile(Model::parse(c.text), options).handle()->plan.graph;
}

class WeightCodes : public ::testing::TestWithParam<WeightCodeGraph> {};

TEST_P(WeightCodes, GiveTheConstantAgain) {
  const WeightCodeGraph& c = GetParam();
  const auto graph = graph_of(c);
  const ir::Value* value = coded_value(*graph);
  ASSERT_NE(value, nullptr) << to_string(*graph);
  const ir::WeightCodes& codes = *value->codes;
  EXPECT_EQ(codes.bits, c.bits);
  EXPECT_EQ(codes.lines, c.lines);
  EXPECT_EQ(codes.depth, c.depth);
  EXPECT_EQ(codes.block, std::min(c.block, c.depth));
  EXPECT_EQ(codes.zeros.defined(), c.zeros);
  const std::vector<double> expected = values_of(value->constant), scales = values_of(codes.scales);
  const auto* stored = codes.codes.as<uint8_t>();
  for (int64_t line = 0; line < codes.lines; ++line) {
    for (int64_t k = 0; k < codes.depth; ++k) {
      const int64_t block = line * codes.blocks() + k / codes.block;
      const int64_t zero = c.zeros ? codes.zeros.as<uint8_t>()[block] : codes.zero;
      const int64_t at = codes.depth_axis == 0 ? k * codes.lines + line : line * codes.depth + k;
      ASSERT_EQ(
          element(*value, stored[line * codes.depth + k], zero, scales[static_cast<size_t>(block)]),
          expected[static_cast<size_t>(at)])
          << line << ", " << k;
    }
  }
}

// The order of src/device/product/thin_codes.cuh, as its lanes read it.
TEST_P(WeightCodes, AreStoredAsLanesReadThem) {
  const auto graph = graph_of(GetParam());
  const ir::Value* value = coded_value(*graph);
  ASSERT_NE(value, nullptr);
  const ir::WeightCodes& codes = *value->codes;
  ASSERT_NE(codes.stored_codes, ir::kAbsent);
  const auto constant = [&](ir::ValueId id) {
    return graph->values[static_cast<size_t>(id)].constant;
  };
  const Tensor stored = constant(codes.stored_codes), scales = constant(codes.stored_scales);
  const auto* words = stored.as<uint32_t>();
  const std::vector<double> stored_scales = values_of(scales), own_scales = values_of(codes.scales);
  const int64_t in_lane = 128 / codes.bits, step = 4 * in_lane;
  const int64_t steps = (codes.depth + step - 1) / step;
  for (int64_t line = 0; line < codes.lines; ++line) {
    for (int64_t k = 0; k < codes.depth; ++k) {
      const int64_t lane = line % 8 * 4 + k % step / in_lane, element = k % in_lane;
      const int64_t first = ((line / 8 * steps + k / step) * 32 + lane) * 4;
      const int64_t per_word = 32 / codes.bits, within = element % per_word;
      const int64_t shift = codes.bits == 8 ? 8 * within : 4 * (within / 2) + 16 * (within % 2);
      const uint32_t code = words[first + element / per_word] >> shift & ((1u << codes.bits) - 1);
      ASSERT_EQ(code, codes.codes.as<uint8_t>()[line * codes.depth + k]) << line << ", " << k;
      const int64_t block = k / codes.block;
      ASSERT_EQ(
          stored_scales[static_cast<size_t>((line / 8 * codes.blocks() + block) * 8 + line % 8)],
          own_scales[static_cast<size_t>(line * codes.blocks() + block)]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, WeightCodes, ::testing::ValuesIn(weight_code_graphs()),
                         name_of_codes);

// Matrices without such codes keep none.
TEST(WeightCodesRefused, OtherNumbers) {
  const std::string codes =
      constant_text("q", "uint8[128, 96]", numbers_text(128 * 96, 0, 255, 1)) +
      "f = Cast<to = 1>(q) ";
  const std::string scales =
      constant_text("s", "float[96]", numbers_text(96, 16, 31, 2, 1.0 / 1024));
  const std::string steps =
      constant_text("t", "float[128, 96]", numbers_text(128 * 96, 16, 31, 3, 1.0 / 1024));
  for (const std::string& weights :
       {codes + scales + constant_text("z", "float", "2.5") + "d = Sub(f, z) w = Mul(d, s)",
        codes + steps + "w = Mul(f, t)",              // a scale for each element
        codes + scales + "g = Mul(f, s) w = Exp(g)",  // no longer codes
        // Rounded to fp16 between.
        codes + scales +
            "h = Cast<to = 10>(f) t = Cast<to = 10>(s) g = Mul(h, t) w = Cast<to = 1>(g)",
        codes + constant_text("z", "float", "300") + "w = Sub(f, z)",  // beyond 8 bits
        constant_text("q", "int32[128, 96]", numbers_text(128 * 96, 0, 300, 4)) +
            "w = Cast<to = 1>(q)"}) {
    EXPECT_EQ(coded_value(*graph_of(matmul_graph("other", "float", weights, 8, 128))), nullptr)
        << weights.substr(weights.size() - 60);
  }
}

// A difference of bytes wraps around: it is a code by itself.
TEST(WeightCodesOfBytes, WrapAround) {
  const std::string weights =
      constant_text("q", "uint8[128, 96]", numbers_text(128 * 96, 0, 255, 1)) +
      constant_text("z", "uint8", "100") + "d = Sub(q, z) w = Cast<to = 1>(d)";
  const auto graph = graph_of(matmul_graph("bytes", "float", weights, 8, 128));
  const ir::Value* value = coded_value(*graph);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(value->codes->zero, 0);
  const std::vector<double> expected = values_of(value->constant);
  for (int64_t line = 0; line < 96; ++line) {
    for (int64_t k = 0; k < 128; ++k) {
      ASSERT_EQ(value->codes->codes.as<uint8_t>()[line * 128 + k],
                expected[static_cast<size_t>(k * 96 + line)]);
    }
  }
}

// Merged products have their parts' lines one after the other.
TEST(WeightCodesMerged, HaveTheLinesOfAllParts) {
  std::string body;
  for (const char* part : {"a", "b"}) {
    const std::string name(part);
    body += constant_text("q" + name, "int8[128, 64]", numbers_text(128 * 64, -8, 7, *part)) +
            constant_text("s" + name, "float[64]", numbers_text(64, 16, 31, *part, 1.0 / 1024)) +
            "w" + name + " = DequantizeLinear<axis = 1>(q" + name + ", s" + name + ") y" + name +
            " = MatMul(x, w" + name + ") ";
  }
  const auto graph = graph_of({"merged",
                               "<ir_version: 10, opset_import: [\"\" : 21]> g (float[m, 128] x) => "
                               "(float[m, 64] y, float[m, 64] z) { " +
                                   body + "y = Tanh(ya) z = Tanh(yb) }"});
  const ir::Value* value = coded_value(*graph);
  ASSERT_NE(value, nullptr) << to_string(*graph);
  EXPECT_EQ(value->codes->lines, 128);
  const auto* codes = value->codes->codes.as<uint8_t>();
  const std::vector<double> weights = values_of(value->constant);
  const std::vector<double> scales = values_of(value->codes->scales);
  for (int64_t line = 0; line < 128; ++line) {
    for (int64_t k = 0; k < 128; ++k) {
      ASSERT_EQ(element(*value, codes[line * 128 + k], value->codes->zero,
                        scales[static_cast<size_t>(line)]),
                weights[static_cast<size_t>(k * 128 + line)]);
    }
  }
}

}  // namespace
}  // namespace redfuser::testing
