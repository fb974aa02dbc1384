// Extremes' places, ranks and running sums along drawn axes of drawn shapes: the CPU against the
// reference, and which GPU family computes them.
#include <random>

#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Drawn {
  std::string text;
  int64_t length = 1;  // of the axis
};

int64_t drawn(std::mt19937& generator, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator);
}

// A graph over one tensor; `largest` is the most elements of its axis.
Drawn draw(std::mt19937& generator, int64_t largest) {
  const char* const types[] = {"float", "float16", "bfloat16", "double", "int64", "int32", "uint8"};
  const auto rank = static_cast<int>(drawn(generator, 1, 4));
  const auto axis = static_cast<int>(drawn(generator, 0, rank - 1));
  const auto length = drawn(generator, 1, largest);
  const int64_t k = drawn(generator, 1, std::min<int64_t>(length, 40));
  const auto kind = drawn(generator, 0, 4);
  const char* type = types[drawn(generator, 0, kind == 4 ? 3 : 6)];
  std::vector<int64_t> dims, kept;
  for (int d = 0; d < rank; ++d) dims.push_back(d == axis ? length : drawn(generator, 1, 9));
  kept = dims;
  kept[static_cast<size_t>(axis)] = kind < 2 ? 1 : kind < 4 ? k : length;
  const bool reverse = drawn(generator, 0, 1) != 0;
  const std::string x = fmt::format("{}[{}]", type, fmt::join(dims, ","));
  const std::string places = fmt::format("int64[{}]", fmt::join(kept, ","));
  const std::string values = fmt::format("{}[{}]", type, fmt::join(kept, ","));
  const char* head = "<ir_version: 10, opset_import: [\"\" : 21]> g";
  if (kind < 2) {
    return {fmt::format("{} ({} x) => ({} y) {{ y = Arg{}<axis = {}, select_last_index = {}>(x) }}",
                        head, x, places, kind == 0 ? "Max" : "Min", axis, reverse ? 1 : 0),
            length};
  }
  if (kind < 4) {
    return {fmt::format("{} ({} x) => ({} y, {} i) {{ k = Constant<value = int64[1] {{{}}}>() "
                        "y, i = TopK<axis = {}, largest = {}>(x, k) }}",
                        head, x, values, places, k, axis, reverse ? 0 : 1),
            length};
  }
  return {fmt::format("{} ({} x) => ({} y) {{ a = Constant<value = int64 {{{}}}>() "
                      "y = CumSum<reverse = {}, exclusive = {}>(x, a) }}",
                      head, x, values, axis, reverse ? 1 : 0, drawn(generator, 0, 1)),
          length};
}

TEST(RandomAxes, OfTheCpuAgreeWithTheReference) {
  std::mt19937 generator(20);
  for (int number = 0; number < 80; ++number) {
    const Drawn graph = draw(generator, 90);
    SCOPED_TRACE(graph.text);
    const Model model = Model::parse(graph.text);
    RandomOptions random;
    random.seed = static_cast<uint64_t>(number);
    const NamedTensors inputs = random_inputs(model, random);
    const Program program = compile(model);
    SessionOptions reference;
    reference.device = "reference";
    SessionOptions cpu;
    cpu.device = "cpu";
    const bool sums = graph.text.find("CumSum") != std::string::npos;
    const Tolerance tolerance = sums ? Tolerance{1e-2, 2e-2} : Tolerance{0, 0};
    for (const Comparison& result : compare(Session(program, cpu).run(inputs),
                                            Session(program, reference).run(inputs), tolerance)) {
      EXPECT_TRUE(result.passed) << describe(result);
    }
  }
}

// A thread for each result goes through the whole axis: never where the axis is long.
TEST(RandomAxes, OfALongAxisHaveAKernelOfTheirOwn) {
  std::mt19937 generator(21);
  for (int number = 0; number < 60; ++number) {
    const Drawn graph = draw(generator, 60000);
    if (graph.length < 1000) continue;
    SCOPED_TRACE(graph.text);
    const codegen::Target& target = kTargets[static_cast<size_t>(number) % std::size(kTargets)];
    const GeneratedModel model = generate_model(Model::parse(graph.text), target);
    ASSERT_FALSE(model.kernels.empty());
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      EXPECT_NE(kernel.family, "reduce") << kernel.name;
      EXPECT_LE(kernel.shared + kernel.static_shared, target.shared_bytes);
    }
    constexpr int kCall = 80;  // around the slow path of a division
    if (Compiler::find()) expect_compiles(model.kernels, target.architecture, kCall);
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
