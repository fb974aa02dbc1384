// Attention whose masks leave several ranges of keys, in every family, against an evaluation in
// double precision. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include "redfuser/inputs.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/float_reference.h"

namespace redfuser {
namespace {

struct Mask {
  const char* what;
  const char* text;  // from rows i, keys j and their difference d to what is visible, c
};

const Mask kMasks[] = {
    {"near", "a = Abs(d) c = LessOrEqual(a, w)"},
    {"far", "a = Abs(d) c = Greater(a, w)"},
    {"near_by_squares", "a = Mul(d, d) ww = Mul(w, w) c = LessOrEqual(a, ww)"},
    {"prefix_and_window",
     "x = GreaterOrEqual(d, zero) z = Less(d, w) xz = And(x, z) e = Less(j, four) c = Or(xz, e)"},
    {"three_bands",
     "a = Abs(d) x = LessOrEqual(a, four) z = Sub(a, far) b = Abs(z) u = LessOrEqual(b, four)"
     " c = Or(x, u)"},
    {"rows_and_columns",
     "a = Abs(d) x = LessOrEqual(a, w) e = Less(j, four) g = Less(i, four) eg = Or(e, g)"
     " c = Or(x, eg)"},
    {"other_blocks", "x = Div(i, w) z = Div(j, w) s = Equal(x, z) c = Not(s)"},
    {"block_neighbours",
     "x = Div(i, w) z = Div(j, w) b = Sub(x, z) a = Abs(b) c = LessOrEqual(a, one)"},
};

constexpr const char* kInfinity =
    " none = Constant<value = float {-inf}>() p3 = Where(c, p2, none)";

// The lowest finite number instead; rows that see nothing have the mean of all values.
const Mask kLowest[] = {
    {"chosen", " none = Constant<value = float {-3.4028235e38}>() p3 = Where(c, p2, none)"},
    {"added",
     " none = Constant<value = float {-3.4028235e38}>() nought = Constant<value = float {0}>()"
     " b = Where(c, nought, none) p3 = Add(p2, b)"},
};

struct Sizes {
  const char* what;
  const char* type;
  int queries, keys, head;
};

const Sizes kSizes[] = {{"many_rows", "float16", 500, 700, 64},
                        {"few_rows", "float16", 5, 2000, 128},
                        {"floats", "float", 300, 500, 64},
                        {"large_heads", "bfloat16", 100, 500, 320}};

using Case = std::tuple<Mask, Sizes>;

// `hides`: from scores p2 and what is visible to p3.
Model model_of(const Case& c, const char* hides) {
  const auto& [mask, sizes] = c;
  const std::string head = std::to_string(sizes.head) + "]";
  const std::string type = std::string(sizes.type) + "[2, 2, ";
  const std::string rows = std::to_string(sizes.queries) + ", ";
  const std::string keys = std::to_string(sizes.keys) + ", ";
  const auto integer = [](const std::string& name, int value) {
    return name + " = Constant<value = int64 {" + std::to_string(value) + "}>() ";
  };
  return Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (" + type + rows + head + " q, " + type + keys +
      head + " k, " + type + keys + head + " v) => (y) {" + integer("zero", 0) + integer("one", 1) +
      integer("four", 4) + integer("w", 90) + integer("far", 200) + integer("m", sizes.queries) +
      integer("n", sizes.keys) +
      "ax = Constant<value = int64[1] {1}>() r = Range(zero, m, one) i = Unsqueeze(r, ax)"
      " j = Range(zero, n, one) d = Sub(i, j) " +
      mask.text +
      " t = Transpose<perm = [0, 1, 3, 2]>(k) p0 = MatMul(q, t) p1 = Cast<to = 1>(p0)"
      " scale = Constant<value = float {0.1}>() p2 = Mul(p1, scale)" +
      hides + " p4 = Softmax<axis = -1>(p3) p5 = CastLike(p4, v) y = MatMul(p5, v) }");
}

void expect_agrees(const Model& model) {
  const Program program = compile(model);
  const NamedTensors inputs = random_inputs(model, {.seed = 3});
  Session reference(program, {.device = "reference"}), gpu(program, {.device = "cuda"});
  constexpr double kTolerance = 1.6e-2;  // of bf16; a tile too few or too many is worse
  EXPECT_LE(distance(gpu.run(inputs).at("y"), reference.run(inputs).at("y")), kTolerance);
}

class CudaAttentionMasks : public testing::TestWithParam<Case> {};

TEST_P(CudaAttentionMasks, AgreesWithTheReference) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  expect_agrees(model_of(GetParam(), kInfinity));
}

// The first tile of many rows, and all tiles of some, are hidden by a finite number.
class CudaAttentionLowest : public testing::TestWithParam<Case> {};

TEST_P(CudaAttentionLowest, AgreesWithTheReference) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const auto& [hides, sizes] = GetParam();
  const Mask later{"later", "a = Sub(j, far) c = Greater(a, i)"};
  expect_agrees(model_of({later, sizes}, hides.text));
}

INSTANTIATE_TEST_SUITE_P(Masks, CudaAttentionMasks,
                         testing::Combine(testing::ValuesIn(kMasks), testing::ValuesIn(kSizes)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).what) + "_" +
                                  std::get<1>(info.param).what;
                         });

// With more rows, for which kernels of warpgroups are chosen on sm_90.
std::vector<Sizes> sizes_of_lowest() {
  std::vector<Sizes> result(std::begin(kSizes), std::end(kSizes));
  result.push_back({"warpgroups", "bfloat16", 1100, 1200, 128});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Masks, CudaAttentionLowest,
                         testing::Combine(testing::ValuesIn(kLowest),
                                          testing::ValuesIn(sizes_of_lowest())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).what) + "_" +
                                  std::get<1>(info.param).what;
                         });

}  // namespace
}  // namespace redfuser
