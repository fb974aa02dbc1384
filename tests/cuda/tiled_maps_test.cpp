// Elementwise steps that change the order of dimensions on a GPU, against the CPU. Skipped without
// a GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "codegen/maps/tiled_map.h"
#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

// A permutation of two to four dimensions, drawn from its seed, of which some are symbols; and what
// is computed behind it.
class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {
    const char* const types[] = {"float16", "float", "bfloat16", "double", "int32", "float16"};
    type_ = types[draw(6)];
    const size_t rank = 2 + draw(3);
    std::vector<size_t> order(rank);
    std::iota(order.begin(), order.end(), size_t{0});
    while (order.back() + 1 == rank) std::shuffle(order.begin(), order.end(), random_);
    std::vector<std::string> dims;
    const bool open = draw(2) == 0;
    for (size_t i = 0; i < rank; ++i) {
      const bool turns = i == order.back() || i + 1 == rank;
      const int64_t most = turns ? 700 : 6;
      dims_.push_back(1 + static_cast<int64_t>(draw(static_cast<size_t>(most))));
      if (turns && draw(3) > 0) dims_.back() = (dims_.back() + 15) / 16 * 16;
      dims.push_back(open ? fmt::format("d{}", i) : fmt::to_string(dims_.back()));
    }
    std::vector<std::string> turned;
    for (const size_t i : order) turned.push_back(dims[i]);
    const std::string whole = fmt::format("{}", fmt::join(turned, ", "));
    const std::string inputs[] = {"", fmt::format(", {}[{}] r", type_, whole),
                                  fmt::format(", {}[{}] r", type_, turned.back()),
                                  fmt::format(", {}[{}, 1] r", type_, turned[rank - 2])};
    const size_t operand = draw(4);
    graph_ = fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[{1}] x{2}) => ({0}[{3}] y) {{ "
        "t = Transpose<perm = [{4}]>(x) y = {5}(t{6}) }}",
        type_, fmt::join(dims, ", "), inputs[operand], whole, fmt::join(order, ", "),
        operand == 0 ? "Neg" : "Add", operand == 0 ? "" : ", r");
  }

  const std::string& graph() const { return graph_; }
  std::map<std::string, int64_t> sizes() const {
    std::map<std::string, int64_t> result;
    for (size_t i = 0; i < dims_.size(); ++i) {
      const std::string name = fmt::format("d{}", i);
      if (graph_.find(name) != std::string::npos) result[name] = dims_[i];
    }
    return result;
  }

 private:
  size_t draw(size_t count) { return random_() % count; }

  std::mt19937 random_;
  std::string type_, graph_;
  Dims dims_;
};

class CudaTiledMaps : public ::testing::TestWithParam<unsigned> {};

// By default and with the choices measured.
TEST_P(CudaTiledMaps, AgreeWithTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Drawn drawn(GetParam());
  const Model model = Model::parse(drawn.graph());
  const Program program = compile(model);
  Session cpu(program);
  const NamedTensors inputs = random_inputs(model, {GetParam(), drawn.sizes(), {}, {}});
  const NamedTensors expected = cpu.run(inputs);
  for (const bool tune : {false, true}) {
    SessionOptions options;
    options.device = "cuda";
    options.tune = tune;
    Session gpu(program, options);
    for (const Comparison& comparison : compare(gpu.run(inputs), expected, {0x1p-9, 0x1p-7})) {
      EXPECT_TRUE(comparison.passed) << drawn.graph() << ": " << describe(comparison);
    }
    bool offered = false;
    for (const StepFacts& facts : gpu.step_facts()) {
      offered |= facts.family == codegen::kTiledMapFamily;
      for (const auto& candidate : facts.candidates) {
        offered |= candidate.family == codegen::kTiledMapFamily && candidate.refusal.empty();
      }
    }
    EXPECT_TRUE(offered) << drawn.graph();
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaTiledMaps, ::testing::Range(0u, 48u));

}  // namespace
}  // namespace redfuser
