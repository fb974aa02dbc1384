// Independent elementwise steps in one launch: launches of a token, memory that lives until the
// kernel, outputs in the memory of inputs, choices, and what happens where the kernel fails.
#include <cstdlib>
#include <cstring>
#include <random>

#include "codegen/maps/maps_kernel.h"
#include "fake_cuda/device_harness.h"
#include "redfuser/dlpack.h"
#include "redfuser/error.h"
#include "runtime/gpu/bound/memory_plan.h"
#include "runtime/gpu/bound/program.h"

namespace redfuser::device_tests {
namespace {

// Three maps of other shapes and types, none of which depends on another one.
const char* const kThree =
    "g (float[m] a, int64[n, k] b, double[3, 5] c) => (float16[m] x, float[n, k] y, bool[3, 5] z) {"
    "  x = Cast<to = 10>(a)  y = Cast<to = 1>(b)  z = Cast<to = 9>(c) }";

NamedTensors inputs_of(int64_t m, int64_t n, int64_t k) {
  NamedTensors result = {{"a", Tensor(DType::Float32, {m})},
                         {"b", Tensor(DType::Int64, {n, k})},
                         {"c", Tensor(DType::Float64, {3, 5})}};
  for (auto& [name, tensor] : result) std::memset(tensor.mutable_data(), 0, tensor.bytes());
  return result;
}

class Maps : public FakeGpu {
 protected:
  size_t launches(Session& session, const NamedTensors& inputs) {
    gpu->launches.clear();
    session.run(inputs);
    EXPECT_TRUE(gpu->refusals.empty());
    return gpu->launches.size();
  }

  static std::vector<std::string> families(const Session& session) {
    std::vector<std::string> result;
    for (const StepFacts& facts : session.step_facts()) result.push_back(facts.family);
    return result;
  }

  static std::string warnings(const Session& session) {
    std::string text;
    for (const std::string& note : session.notes()) {
      if (note.starts_with("warning")) text += note + "\n";
    }
    return text;
  }
};

TEST_F(Maps, AreOneLaunchOfAllTheirBlocks) {
  Session session(compile(model(kThree)), options);
  EXPECT_EQ(launches(session, inputs_of(3000, 5, 1000)), 1u);
  // Eight halves, four floats and eight bytes a thread, 256 threads a block.
  EXPECT_EQ(gpu->launches[0].grid[0], 2u + 5u + 1u);
  EXPECT_EQ(families(session), (std::vector<std::string>{"in_maps", "in_maps", "maps"}));
}

TEST_F(Maps, EmptyPartsHaveNoBlocks) {
  Session session(compile(model(kThree)), options);
  EXPECT_EQ(launches(session, inputs_of(0, 5, 0)), 1u);
  EXPECT_EQ(gpu->launches[0].grid[0], 1u);
}

// The leader has the kernel, and the bytes of all parts.
TEST_F(Maps, AreProfiledAsTheLeader) {
  Session session(compile(model(kThree)), options);
  session.profile(true);
  session.run(inputs_of(100, 10, 20));
  const std::vector<StepTime> times = session.step_times();
  ASSERT_EQ(times.size(), 3u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(times[i].kernels.empty());
    EXPECT_EQ(times[i].bytes, 0);
  }
  ASSERT_EQ(times[2].kernels.size(), 1u);
  EXPECT_TRUE(times[2].kernels[0].name.starts_with("maps_f16_"));
  EXPECT_EQ(times[2].bytes, 100 * (4 + 2) + 200 * (8 + 4) + 15 * (8 + 1));
}

TEST_F(Maps, AreApartWhereTheKernelDoesNotCompile) {
  setenv("FAKE_NVRTC_FAILS", "// maps", 1);
  Session session(compile(model(kThree)), options);
  unsetenv("FAKE_NVRTC_FAILS");
  EXPECT_EQ(launches(session, inputs_of(8, 8, 8)), 3u);
  expect_mentions(warnings(session),
                  "maps fails and is left out of \"Cast_2\", which apart computes");
  EXPECT_EQ(families(session), (std::vector<std::string>{"in_maps", "in_maps", "apart"}));
}

TEST_F(Maps, AreApartWhereTheKernelIsRefused) {
  gpu->kernel_ms = [](const std::string& text, unsigned) {
    return text.find("// maps") == std::string::npos ? 1.0 : -1.0;
  };
  Session session(compile(model(kThree)), options);
  EXPECT_EQ(launches(session, inputs_of(8, 8, 8)), 3u);
  expect_mentions(warnings(session), "which apart computes");
}

TEST_F(Maps, AnErrorNamesTheNodeWhereNothingComputesThem) {
  setenv("FAKE_NVRTC_FAILS", "// map", 1);
  const std::string error = error_of([&] { Session(compile(model(kThree)), options); });
  unsetenv("FAKE_NVRTC_FAILS");
  expect_mentions(error, "no kernel computes it");
}

class TunedMaps : public Maps, public ::testing::WithParamInterface<bool> {};

TEST_P(TunedMaps, HaveTheFasterChoice) {
  const bool slow = GetParam();
  gpu->kernel_ms = [=](const std::string& text, unsigned) {
    return text.find("// maps") == std::string::npos ? 0.5 : slow ? 3.0 : 0.7;
  };
  options.tune = true;
  Session session(compile(model(kThree)), options);
  session.run(inputs_of(8, 8, 8));
  EXPECT_EQ(session.launches(), slow ? 3 : 1);
  const std::vector<StepTuning> tunings = session.tunings();
  ASSERT_EQ(tunings.size(), 1u);
  EXPECT_EQ(tunings[0].default_choice, "maps parts=3");
  EXPECT_EQ(tunings[0].choice, slow ? "apart" : "maps parts=3");
  EXPECT_EQ(tunings[0].measured.size(), 2u);
  EXPECT_EQ(families(session).back(), slow ? "apart" : "maps");
  EXPECT_EQ(warnings(session), "");
}

INSTANTIATE_TEST_SUITE_P(Times, TunedMaps, ::testing::Bool());

// The second output may be in the memory of its own map's input, not of the first one's: blocks of
// both maps run at the same time.
TEST_F(Maps, OutputsDoNotOverwriteWhatIsReadBesideThem) {
  Session session(compile(model("g (float[64] a, float[2, 32] b) => (float[64] x, float[2, 32] y) {"
                                "  x = Exp(a)  y = Neg(b) }")),
                  options);
  const auto copies = [&](bool over_a) {
    const DeviceTensor a = session.allocate(DType::Float32, {64});
    const DeviceTensor b = session.allocate(DType::Float32, {2, 32});
    DeviceTensor y = over_a ? a : b;
    y.dims = b.dims;
    gpu->on_device = 0;
    session.enqueue({{"a", a}, {"b", b}}, {{"y", y}});
    session.synchronize();
    return gpu->on_device;
  };
  EXPECT_EQ(copies(false), 0);
  EXPECT_EQ(gpu->launches.size(), 1u);
  EXPECT_EQ(copies(true), 1);
}

// Which value has which bytes of the arena, as the steps write them.
class Contents {
 public:
  void write(int64_t begin, int64_t bytes, ir::ValueId value) {
    std::erase_if(ranges_, [&](const Range& range) {
      return std::max(range.begin, begin) < std::min(range.end, begin + bytes);
    });
    ranges_.push_back({begin, begin + bytes, value});
  }
  bool has(int64_t begin, ir::ValueId value) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
      return range.begin == begin && range.value == value;
    });
  }

 private:
  struct Range {
    int64_t begin, end;
    ir::ValueId value;
  };
  std::vector<Range> ranges_;
};

// A drawn graph of square matrices: products, maps of one or two earlier values, their transposes.
std::string drawn_graph(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::string> values = {"a", "b"};
  std::string body;
  for (int i = 0; i < 20; ++i) {
    const auto drawn = [&] {
      return values[values.size() - 1 - random() % std::min<size_t>(4, values.size())];
    };
    const std::string name = "v" + std::to_string(i), first = drawn(), second = drawn();
    switch (random() % 3) {
      case 0:
        body += name + " = MatMul(" + first + ", " + second + ") ";
        break;
      case 1:
        body += "t" + name + " = Transpose(" + first + ") " + name + " = Exp(t" + name + ") ";
        break;
      default:
        body += "t" + name + " = Transpose(" + first + ") " + name + " = Add(t" + name + ", " +
                second + ") ";
    }
    values.push_back(name);
  }
  std::string last;
  for (size_t i = values.size() - 4; i < values.size(); ++i) {
    body += "y" + values[i] + " = MatMul(" + values[i] + ", a) ";
    last += (last.empty() ? "" : ", ") + ("float[64, 64] y" + values[i]);
  }
  return "g (float[64, 64] a, float[64, 64] b) => (" + last + ") { " + body + "}";
}

// What a step reads is there when it is computed, in its leader's place, and what a kernel writes
// is apart from all that it touches besides.
TEST_F(Maps, MemoryLivesUntilTheKernel) {
  int groups = 0;
  for (unsigned seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    const Program compiled = compile(model(drawn_graph(seed)));
    const auto program = runtime::cuda_program(compiled.handle(), options);
    const fuse::Plan& plan = compiled.handle()->plan;
    const std::vector<int64_t> symbols(compiled.handle()->symbol_names.size() + 16, 0);
    const runtime::MemoryPlan memory(*program, program->steps(), symbols, false);
    const codegen::JoinedSteps& joined = program->joined();
    Contents contents;
    const auto write = [&](ir::ValueId value) {
      contents.write(*memory.offset(value), memory.room(value), plan.root(value));
    };
    for (const ir::ValueId input : plan.graph->inputs) write(input);
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      groups += joined.group_of(i) != nullptr;
      if (std::holds_alternative<fuse::AliasStep>(plan.steps[i].kind)) continue;
      for (int order : {0, 1}) {
        Contents before = contents;
        std::vector<size_t> done = joined.done_by(i);
        if (order == 1) std::reverse(done.begin(), done.end());
        const size_t buffers = program->steps()[i]->form.scratch.size();
        for (size_t k = 0; k < buffers; ++k) {
          contents.write(memory.scratch_offset(i, static_cast<int>(k)),
                         memory.scratch_room(i, static_cast<int>(k)), -1);
        }
        for (const size_t step : done) {
          for (const ir::ValueId read : plan.steps[step].reads) {
            if (!memory.offset(read)) continue;
            EXPECT_TRUE(contents.has(*memory.offset(read), plan.root(read))) << i << " " << read;
          }
          for (const ir::ValueId written : plan.steps[step].writes) write(written);
        }
        for (const size_t step : done) {
          for (const ir::ValueId written : plan.steps[step].writes) {
            EXPECT_TRUE(contents.has(*memory.offset(written), plan.root(written))) << i;
          }
        }
        if (order == 0) contents = std::move(before);
      }
    }
  }
  EXPECT_GT(groups, 10);
}

}  // namespace
}  // namespace redfuser::device_tests
