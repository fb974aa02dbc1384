// Permutations of several short axes, and transforms of signals, on a GPU against the CPU. Skipped
// without a GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

constexpr const char* kHead = "<ir_version: 9, opset_import: [\"\" : 20]> ";

// The graph's results by default and with its choices measured; the families of its steps.
std::set<std::string> expect_as_cpu(const std::string& graph, unsigned seed,
                                    const std::map<std::string, int64_t>& sizes = {}) {
  const Model model = Model::parse(graph);
  const Program program = compile(model);
  Session cpu(program);
  const NamedTensors inputs = random_inputs(model, {seed, sizes, {}, {}});
  const NamedTensors expected = cpu.run(inputs);
  std::set<std::string> families;
  for (const bool tune : {false, true}) {
    SessionOptions options;
    options.device = "cuda";
    options.tune = tune;
    Session gpu(program, options);
    for (const Comparison& comparison : compare(gpu.run(inputs), expected, {0x1p-9, 0x1p-7})) {
      EXPECT_TRUE(comparison.passed) << graph << ": " << describe(comparison);
    }
    for (const StepFacts& facts : gpu.step_facts()) {
      families.insert(facts.family);
      for (const auto& candidate : facts.candidates) {
        if (candidate.refusal.empty()) families.insert(candidate.family);
      }
    }
  }
  return families;
}

// A permutation of four to six dimensions, most of them short, some a symbol.
std::string permutation(unsigned seed, std::map<std::string, int64_t>& sizes) {
  std::mt19937 random(seed);
  const auto draw = [&](size_t count) { return static_cast<int64_t>(random() % count); };
  const char* const types[] = {"float16", "float", "bfloat16", "double", "int32", "uint8"};
  const std::string type = types[draw(6)];
  const auto rank = static_cast<size_t>(4 + draw(3));
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  while (order.back() + 1 == rank) std::shuffle(order.begin(), order.end(), random);
  std::vector<std::string> dims, turned;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = draw(3) == 0 ? 20 + draw(60) : 1 + draw(7);
    const std::string name = fmt::format("d{}", i);
    const bool open = draw(4) == 0;
    if (open) sizes[name] = size;
    dims.push_back(open ? name : fmt::to_string(size));
  }
  for (const size_t i : order) turned.push_back(dims[i]);
  const std::string whole = fmt::format("{}", fmt::join(turned, ", "));
  const bool adds = draw(2) == 0;
  return fmt::format(
      "{0}g ({1}[{2}] x{3}) => ({1}[{4}] y) {{ t = Transpose<perm = [{5}]>(x) y = {6} }}", kHead,
      type, fmt::join(dims, ", "), adds ? fmt::format(", {}[{}] r", type, turned.back()) : "",
      whole, fmt::join(order, ", "), adds ? "Add(t, r)" : "Identity(t)");
}

class CudaBoxMaps : public ::testing::TestWithParam<unsigned> {};

TEST_P(CudaBoxMaps, AgreeWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  std::map<std::string, int64_t> sizes;
  const std::string graph = permutation(GetParam(), sizes);
  expect_as_cpu(graph, GetParam(), sizes);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaBoxMaps, ::testing::Range(0u, 16u));

struct Case {
  const char* name;
  const char* graph;
  const char* family;  // that is chosen, or measured
};

const Case kCases[] = {
    {"permuted",
     "g (float16[40, 24, 47, 2, 2] x) => (float16[40, 2, 24, 2, 47] y) {"
     " y = Transpose<perm = [0, 3, 1, 4, 2]>(x) }",
     "box_map"},
    {"shuffled",
     "g (float16[2, 32, 19, 24] x) => (float16[2, 2, 76, 96] y) {"
     " y = DepthToSpace<blocksize = 4, mode = \"CRD\">(x) }",
     "box_map"},
};

class CudaMapForms : public ::testing::TestWithParam<Case> {};

TEST_P(CudaMapForms, AgreeWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const auto families = expect_as_cpu(std::string(kHead) + GetParam().graph, 3);
  EXPECT_TRUE(families.contains(GetParam().family));
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaMapForms, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Transforms whose sums have two factors, of whole spectra and of halves, and one of a prime
// length.
const Case kTransforms[] = {
    {"spectra",
     "g (float[5, 144, 2] x) => (float[5, 144, 2] y)<int64 a = {1}> {"
     " y = DFT<inverse = 1>(x, , a) }",
     ""},
    {"halves",
     "g (float16[3, 200, 1] x) => (float16[3, 101, 2] y)<int64 a = {1}> {"
     " y = DFT<onesided = 1>(x, , a) }",
     ""},
    {"padded",
     "g (float[7, 50, 4, 2] x) => (float[7, 64, 4, 2] y)<int64 n = {64}, int64 a = {1}> {"
     " y = DFT(x, n, a) }",
     ""},
    {"prime",
     "g (float[2, 61, 2] x) => (float[2, 61, 2] y)<int64 a = {1}> {"
     " y = DFT(x, , a) }",
     ""},
    {"frames",
     "g (float[2, 1000, 1] x, float[100] w) => (float[2, 46, 51, 2] y)"
     "<int64 s = {20}> { y = STFT(x, s, w) }",
     ""},
};

class CudaTransforms : public ::testing::TestWithParam<Case> {};

TEST_P(CudaTransforms, AgreeWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  expect_as_cpu(std::string(kHead) + GetParam().graph, 5);
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaTransforms, ::testing::ValuesIn(kTransforms),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace redfuser
