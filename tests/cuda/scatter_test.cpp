// Scatters that combine many updates on a GPU, against the CPU; skipped where there is no GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"

namespace redfuser {
namespace {

struct Drawn {
  std::string graph;
  std::map<std::string, int64_t> sizes;  // of symbols
  int64_t slots = 1;                     // that indices name
};

// Updates of lines of `c` elements, or of elements; half of all updates are for one slot.
Drawn drawn(std::mt19937& random) {
  const char* const types[] = {"float", "float16", "double", "int32", "int64"};
  const char* const reductions[] = {"add", "mul", "max", "min"};
  const int64_t counts[] = {1, 37, 5000, 60000}, slots[] = {1, 1000, 30011};
  const std::string type = types[random() % 5], how = reductions[random() % 4];
  Drawn result;
  result.slots = slots[random() % 3];
  const bool lines = random() % 2 == 0, open = random() % 2 == 0;
  result.sizes = {{"u", counts[random() % 4]}, {"t", result.slots}, {"c", 1 + random() % 9}};
  const auto size = [&](const char* name) {
    return open ? std::string(name) : std::to_string(result.sizes.at(name));
  };
  const std::string u = size("u"), t = size("t"), c = size("c");
  const std::string node =
      lines ? fmt::format("y = ScatterND<reduction = \"{}\">(d, i, x)", how)
            : fmt::format("y = ScatterElements<axis = 0, reduction = \"{}\">(d, i, x)", how);
  result.graph = fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[{1}, {2}] d, int64[{3}, {4}] i, "
      "{0}[{3}, {2}] x) => ({0}[{1}, {2}] y) {{ {5} }}",
      type, t, c, u, lines ? "1" : c, node);
  if (!open) result.sizes.clear();
  return result;
}

class CudaScatter : public ::testing::TestWithParam<unsigned> {};

TEST_P(CudaScatter, AgreesWithTheCpuAndWithItself) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  std::mt19937 random(GetParam());
  const Drawn graph = drawn(random);
  const Model model = Model::parse(graph.graph);
  const Program program = compile(model);
  SessionOptions options;
  options.device = "cuda";
  Session gpu(program, options), cpu(program);
  NamedTensors inputs = random_inputs(model, {GetParam(), graph.sizes, {}, {}});
  Tensor& indices = inputs.at("i");
  for (int64_t k = 0; k < indices.size(); ++k) {
    const auto slot = static_cast<int64_t>(random() % static_cast<uint64_t>(graph.slots));
    indices.as<int64_t>()[k] = random() % 2 == 0 ? slot / 2 : -1;
  }
  const NamedTensors got = gpu.run(inputs);
  for (const Comparison& each : compare(got, cpu.run(inputs), {1e-2, 1e-2})) {
    EXPECT_TRUE(each.passed) << graph.graph << ": " << describe(each);
  }
  const NamedTensors again = gpu.run(inputs);
  EXPECT_EQ(std::memcmp(got.at("y").data(), again.at("y").data(), got.at("y").bytes()), 0)
      << graph.graph;
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaScatter, ::testing::Range(0u, 40u));

}  // namespace
}  // namespace redfuser
