// Attention of operands of any types against an evaluation in double precision. Skipped where there
// is no GPU.
#include <gtest/gtest.h>

#include "redfuser/inputs.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/float_reference.h"

namespace redfuser {
namespace {

struct Shape {
  const char* what;
  const char* queries;  // dimensions of q, k and v
  const char* keys;
  const char* values;
};

const Shape kShapes[] = {
    {"many_rows", "[2, 3, 200, 64]", "[2, 3, 333, 64]", "[2, 3, 333, 64]"},
    {"few_rows", "[2, 3, 9, 40]", "[2, 3, 1000, 40]", "[2, 3, 1000, 72]"},
    {"one_row", "[2, 3, 1, 128]", "[2, 3, 700, 128]", "[2, 3, 700, 128]"},
    {"window", "[40, 3, 49, 32]", "[40, 3, 49, 32]", "[40, 3, 49, 32]"},
    {"small_window", "[40, 3, 7, 16]", "[40, 3, 20, 16]", "[40, 3, 20, 24]"},
};

struct Types {
  const char *query, *key, *value;
};

using Case = std::tuple<Shape, Types>;

Model model_of(const Case& c) {
  const auto& [shape, types] = c;
  return Model::parse(
      std::string("<ir_version: 9, opset_import: [\"\" : 20]> g (") + types.query + shape.queries +
      " q, " + types.key + shape.keys + " k, " + types.value + shape.values +
      " v) => (y) { qf = Cast<to = 1>(q) kf = Cast<to = 1>(k) vf = Cast<to = 1>(v)"
      " t = Transpose<perm = [0, 1, 3, 2]>(kf) s = MatMul(qf, t)"
      " scale = Constant<value = float {0.125}>() m = Mul(s, scale) p = Softmax<axis = -1>(m)"
      " y = MatMul(p, vf) }");
}

Tensor run(const Program& program, const NamedTensors& inputs, const char* device, bool exact) {
  SessionOptions options;
  options.device = device;
  options.exact_products = exact;
  Session session(program, options);
  return session.run(inputs).at("y");
}

class CudaAttentionTypes : public testing::TestWithParam<Case> {};

// Operands of one 16-bit type round the weights. One product by TF32 instead of two or three is off
// by 1e-4, an fp32 product by about 2e-7.
TEST_P(CudaAttentionTypes, IsAsExactAsFloats) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  constexpr double kFloats = 1e-6, kHalves = 3e-3;
  const Types types = std::get<1>(GetParam());
  const bool halves = std::string(types.query) == types.key &&
                      std::string(types.key) == types.value && std::string(types.query) != "float";
  const Model model = model_of(GetParam());
  const Program program = compile(model);
  const NamedTensors inputs = random_inputs(model, {.seed = 5});
  const Tensor expected = run(program, inputs, "reference", false);
  for (const bool exact : {false, true}) {
    const Tensor y = run(program, inputs, "cuda", exact);
    EXPECT_LE(distance(y, expected), halves ? kHalves : kFloats) << exact;
  }
}

// Weights that the graph rounds to the 16-bit type of the values, which is not that of the scores.
TEST(CudaRoundedWeights, AreMultipliedInTheValuesType) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  for (const Shape& shape : kShapes) {
    for (const auto& [scores, values] :
         {std::pair("bfloat16", "float16"), std::pair("float16", "bfloat16")}) {
      const Model model = Model::parse(
          std::string("<ir_version: 9, opset_import: [\"\" : 20]> g (") + scores + shape.queries +
          " q, " + scores + shape.keys + " k, " + values + shape.values +
          " v) => (y) { t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t)"
          " scale = Constant<value_float = 0.125>() by = CastLike(scale, s) m = Mul(s, by)"
          " p = Softmax<axis = -1>(m) w = CastLike(p, v) y = MatMul(w, v) }");
      const Program program = compile(model);
      const NamedTensors inputs = random_inputs(model, {.seed = 6});
      const Tensor expected = run(program, inputs, "reference", false);
      EXPECT_LE(distance(run(program, inputs, "cuda", false), expected), 1e-2)
          << shape.what << " " << scores << " " << values;
    }
  }
}

const Types kTypes[] = {
    {"float", "float", "float"},        {"float", "float", "float16"},
    {"float", "float16", "bfloat16"},   {"float16", "float16", "float"},
    {"float16", "bfloat16", "float"},   {"bfloat16", "float16", "float16"},
    {"bfloat16", "bfloat16", "float"},  {"float16", "float", "float16"},
    {"float16", "float16", "bfloat16"}, {"bfloat16", "bfloat16", "bfloat16"},
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto& [shape, types] = info.param;
  return std::string(shape.what) + "_" + types.query + "_" + types.key + "_" + types.value;
}

INSTANTIATE_TEST_SUITE_P(Operands, CudaAttentionTypes,
                         testing::Combine(testing::ValuesIn(kShapes), testing::ValuesIn(kTypes)),
                         name_of);

}  // namespace
}  // namespace redfuser
