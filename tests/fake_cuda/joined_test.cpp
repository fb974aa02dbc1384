// Norms of a decoder are computed by the products that read them, independent elementwise steps in
// one launch, and those of a token by its attention: launches, values that are shown, and what
// happens where a kernel fails.
#include <cstdlib>
#include <cstring>

#include "codegen/attention/mma/block_maps.h"
#include "codegen/select/generate.h"
#include "codegen/thin_rows/thin_rows_kernel.h"
#include "fake_cuda/device_harness.h"
#include "ir/evaluate.h"
#include "runtime/gpu/bound/program.h"
#include "runtime/program/compiled_program.h"
#include "support/test_paths.h"

namespace redfuser::device_tests {
namespace {

// Norms of the decoder: two for each of its two layers, and one at the end.
constexpr int kNorms = 5;
// Sines, cosines and the mask are one launch, and so are the rotation of a layer's queries, that of
// its keys with their append, and the append of its values, which the attention of a token
// computes.
constexpr int kMaps = 3 * 3, kMapLaunches = 3, kTokenMapLaunches = 1;

class Joined : public FakeGpu {
 protected:
  static Model decoder() {
    return Model::load(std::string(test_paths::models()) + "/decoders/llama/model.onnx");
  }

  static NamedTensors inputs(const Model& model, int64_t tokens) {
    NamedTensors result;
    for (const ValueInfo& value : model.inputs()) {
      Dims dims;
      for (const auto& dim : value.dims) {
        const bool batch = dim.symbol == "batch_size", past = dim.symbol == "past_sequence_length";
        dims.push_back(dim.size >= 0                     ? dim.size
                       : batch                           ? 1
                       : past                            ? 8
                       : dim.symbol == "sequence_length" ? tokens
                                                         : 8 + tokens);
      }
      Tensor& tensor = result[value.name] = Tensor(value.dtype, dims);
      std::memset(tensor.mutable_data(), 0, tensor.bytes());
    }
    return result;
  }

  // Of a run whose steps are all by themselves.
  static int launches_apart(const Program& program, const std::map<std::string, int64_t>& sizes) {
    const runtime::CompiledProgram& compiled = *program.handle();
    const ir::Graph graph = clone(compiled.graph());
    codegen::Target target;
    static_cast<select::Machine&>(target) = runtime::machine_of(cuda::Device::open()->info());
    std::vector<int64_t> symbols;
    for (const std::string& name : compiled.symbol_names) {
      const auto found = sizes.find(name);
      symbols.push_back(found == sizes.end() ? 1 : found->second);
    }
    int launches = 0;
    for (const fuse::Step& step : compiled.plan.steps) {
      for (const codegen::GpuCall& call : generate(graph, step, target).calls) {
        const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
        const ir::Expr size =
            launch != nullptr ? launch->grid[0] : std::get<codegen::ProductCall>(call).m;
        launches += evaluate_size(size, symbols) > 0;
      }
    }
    return launches;
  }

  int launches(Session& session, const NamedTensors& inputs) {
    gpu->launches.clear();
    session.run(inputs);
    EXPECT_TRUE(gpu->refusals.empty());
    return static_cast<int>(gpu->launches.size());
  }
};

TEST_F(Joined, NormsOfATokenAreNoLaunches) {
  const Model model = decoder();
  const Program program = compile(model);
  Session session(program, options);
  const int apart = launches_apart(
      program, {{"batch_size", 1}, {"sequence_length", 1}, {"past_sequence_length", 8}});
  EXPECT_EQ(launches(session, inputs(model, 1)), apart - kNorms - (kMaps - kTokenMapLaunches));
  EXPECT_EQ(gpu->launches.size(), 13u);
}

TEST_F(Joined, NormsOfAPromptAreLaunches) {
  const Model model = decoder();
  const Program program = compile(model);
  Session session(program, options);
  const int apart = launches_apart(
      program, {{"batch_size", 1}, {"sequence_length", 40}, {"past_sequence_length", 8}});
  EXPECT_EQ(launches(session, inputs(model, 40)), apart - (kMaps - kMapLaunches));
}

// Where a kernel does not compile, its steps have their own, and the others' are as they were.
TEST_F(Joined, StepsApartAreLeftWhereTheKernelFails) {
  struct Case {
    const char* family;
    int norms, maps;  // launches of the norms, and of the maps
  };
  const Case cases[] = {{codegen::kThinRowsFamily, kNorms, kTokenMapLaunches},
                        {codegen::kBlockMapsFamily, 0, kMapLaunches}};
  const Model model = decoder();
  const Program program = compile(model);
  const int apart = launches_apart(
      program, {{"batch_size", 1}, {"sequence_length", 1}, {"past_sequence_length", 8}});
  for (const Case& c : cases) {
    setenv("FAKE_NVRTC_FAILS", c.family, 1);
    Session session(program, options);
    unsetenv("FAKE_NVRTC_FAILS");
    EXPECT_EQ(launches(session, inputs(model, 1)), apart - (kNorms - c.norms) - (kMaps - c.maps))
        << c.family;
  }
}

// Few rows have choices of the kernel, many those of the product alone.
TEST_F(Joined, AreTunedForFewRowsAndForMany) {
  const Model model = decoder();
  const Program program = compile(model);
  gpu->kernel_ms = [](const std::string& text, unsigned) {
    return text.find(codegen::kThinRowsFamily) == std::string::npos ? 0.5 : 3.0;
  };
  options.tune = true;
  Session session(program, options);
  for (const int64_t tokens : {1, 40, 1}) {
    launches(session, inputs(model, tokens));
    int tuned = 0;
    for (const StepTuning& tuning : session.tunings()) {
      if (!tuning.default_choice.starts_with(codegen::kThinRowsFamily)) continue;
      EXPECT_FALSE(tuning.choice.starts_with(codegen::kThinRowsFamily));
      ++tuned;
    }
    EXPECT_EQ(tuned > 0, tokens <= 16) << tokens;
  }
  for (const std::string& note : session.notes()) {
    EXPECT_FALSE(note.starts_with("warning")) << note;
  }
}

// A value of the rows is shown once the product has written it.
TEST_F(Joined, ValuesAreShownWhenTheyAreWritten) {
  const Program program = compile(
      model("g (float16[2,512] x, float16[512] g, float16[512,1024] w) => (float16[2,1024] y) { "
            "last = Constant<value = int64[1] {-1}>() q = Mul(x, x) v = ReduceMean(q, last) "
            "s = Sqrt(v) n = Div(x, s) m = Mul(n, g) y = MatMul(m, w) }"));
  const fuse::Plan& plan = program.handle()->plan;
  const codegen::JoinedSteps joined(clone(*plan.graph), plan, {}, {});
  ASSERT_EQ(plan.steps.size(), 2u);
  EXPECT_EQ(joined.done_by(0), std::vector<size_t>());
  EXPECT_EQ(joined.done_by(1), (std::vector<size_t>{0, 1}));
}

}  // namespace
}  // namespace redfuser::device_tests
