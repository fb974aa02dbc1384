// Every kernel that the models of models/ and the workloads of redfuser-bench become compiles for
// every architecture, and keeps its registers.
#include <algorithm>
#include <filesystem>
#include <map>

#include "redfuser/convert.h"
#include "support/codegen_harness.h"
#ifdef REDFUSER_TESTS_WORKLOADS
#include "bench_sweep.h"
#endif

namespace redfuser::codegen_tests {
namespace {

namespace fs = std::filesystem;

// Kernels that may spill, and why.
struct Allowance {
  const char* kernel;
  int architecture;
  int spilled;  // bytes
  const char* reason;
};
const Allowance kAllowances[] = {
    {"attention", 80, 48, "128 registers a thread; a bias is found by logarithms in the loop"},
    {"attention", 90, 16, "a mask is found beside a tile's scores and accumulators"},
    {"attention", 100, 8, "as for sm_90a"},
    {"attention_hopper", 90, 20, "terms, or the ranges of a mask, beside a tile's scores"},
    {"ranking_segments", 80, 24, "as for sm_100a"},
    {"ranking_segments", 90, 8, "a quotient's slow path is a call among the places of a row"},
    {"ranking_segments", 100, 24, "keys and elements of a tile beside the places of a row"},
    {"row_resident", 100, 8, "ptxas takes 48 registers for a kernel that needs 56"},
    {"row_streaming", 100, 28, "a hyperbolic tangent beside 128 sums of a row"},
};

int allowed_spill(const std::string& kernel, int architecture) {
  for (const Allowance& allowance : kAllowances) {
    if (kernel == allowance.kernel && architecture == allowance.architecture) {
      return allowance.spilled;
    }
  }
  return 0;
}

// Arrays in local memory besides spilled registers: the reduction of huge angles has one.
int allowed_arrays(const std::string& text) {
  for (const char* function : {"sin", "cos", "tan"}) {
    if (text.find(std::string(function) + "f(") != std::string::npos) return 40;
  }
  return 0;
}

struct Source {
  std::string kernel, origin;
  int static_shared;
};
using Sources = std::map<std::string, Source>;  // by text

void add(Sources& sources, const std::string& origin, const Model& model,
         const codegen::Target& target) {
  for (const codegen::KernelLaunch& kernel : generate_model(model, target).kernels) {
    sources.try_emplace(kernel.source, Source{kernel.family, origin, kernel.static_shared});
  }
}

void add_models(Sources& sources, const codegen::Target& target) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(test_paths::models())) {
    if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) {
    const Model model = Model::load(folder + "/model.onnx");
    const std::string name = fs::path(folder).filename().string();
    add(sources, name, model, target);
    if (target.architecture != 90) continue;
    add(sources, name + " in fp16", convert(model, {DType::Float16}).model, target);
  }
}

#ifdef REDFUSER_TESTS_WORKLOADS
void add_suite(Sources& sources, const std::vector<tools::WorkloadMaker>& suite,
               codegen::Target target, bool exact_masks) {
  target.exact_masks = exact_masks;
  const char* with = exact_masks ? " with exact masks" : "";
  for (const tools::WorkloadMaker& maker : suite) {
    add(sources, maker.name + with, Model::parse(maker.make().model), target);
  }
}
#endif

// Kernels that one test compiles: in parts, so that each takes a minute or two.
struct Part {
  const char* name;
  void (*add)(Sources& sources, const codegen::Target& target);
  bool hopper_only = false;
};

void PrintTo(const Part& part, std::ostream* out) { *out << part.name; }

const Part kParts[] = {
    {"models", add_models},
#ifdef REDFUSER_TESTS_WORKLOADS
    {"rows", [](Sources& s,
                const codegen::Target& t) { add_suite(s, tools::row_workloads(false), t, false); }},
    {"attention",
     [](Sources& s, const codegen::Target& t) {
       add_suite(s, tools::attention_workloads(false), t, false);
     }},
    {"decode",
     [](Sources& s, const codegen::Target& t) {
       add_suite(s, tools::decode_workloads(false), t, false);
     }},
    {"select",
     [](Sources& s, const codegen::Target& t) {
       add_suite(s, tools::select_workloads(false), t, false);
     }},
    {"quantised",
     [](Sources& s, const codegen::Target& t) {
       add_suite(s, tools::quantised_workloads(false), t, false);
     }},
    // The Hopper family's tiles depend on sizes.
    {"shapes",
     [](Sources& s, const codegen::Target& t) { add_suite(s, tools::shape_workloads(), t, false); },
     true},
    {"exact_attention",
     [](Sources& s, const codegen::Target& t) {
       add_suite(s, tools::attention_workloads(false), t, true);
     },
     true},
    {"exact_decode",
     [](Sources& s, const codegen::Target& t) {
       add_suite(s, tools::decode_workloads(false), t, true);
     },
     true},
#endif
};

using Case = std::pair<codegen::Target, Part>;

std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const codegen::Target& target : kTargets) {
    for (const Part& part : kParts) {
      if (part.hopper_only && target.architecture != 90) continue;
      cases.emplace_back(target, part);
    }
  }
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return cuda::architecture_name(info.param.first.architecture) + "_" + info.param.second.name;
}

std::vector<Compiler::Result> compiled(const Sources& sources, int architecture) {
  std::map<std::string, std::string> origins;
  for (const auto& [text, source] : sources) origins[text] = source.kernel + " of " + source.origin;
  return compile_all(origins, architecture);
}

// The launch says how much the text declares: the driver is asked for the sum with the dynamic.
void expect_static_shared(const Source& source, const Compiler::Result& result) {
  constexpr int kPadding = 256;
  EXPECT_LE(result.shared, source.static_shared) << source.kernel << " of " << source.origin;
  EXPECT_GE(result.shared, source.static_shared - kPadding)
      << source.kernel << " of " << source.origin;
}

class CodegenCompile : public ::testing::TestWithParam<codegen::Target> {};
class CodegenRegisters : public ::testing::TestWithParam<Case> {};

void expect_registers(const Sources& sources, const codegen::Target& target) {
  const std::vector<Compiler::Result> results = compiled(sources, target.architecture);
  size_t i = 0;
  for (const auto& [text, source] : sources) {
    const Compiler::Result& result = results[i++];
    EXPECT_NE(result.log.find("bytes stack frame"), std::string::npos) << result.log;
    EXPECT_EQ(result.log.find("instructions are serialized"), std::string::npos)
        << source.kernel << " of " << source.origin << "\n"
        << result.log;
    EXPECT_LE(result.spilled, allowed_spill(source.kernel, target.architecture))
        << source.kernel << " of " << source.origin << "\n"
        << text.substr(0, 1000);
    // Frames are whole multiples of 16 bytes.
    EXPECT_LE(result.stack, (result.spilled + 15) / 16 * 16 + allowed_arrays(text))
        << source.kernel << " of " << source.origin << "\n"
        << text.substr(0, 1000);
    expect_static_shared(source, result);
  }
}

TEST_P(CodegenRegisters, EveryKernelKeepsThem) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const auto& [target, part] = GetParam();
  Sources sources;
  part.add(sources, target);
  EXPECT_FALSE(sources.empty());
  expect_registers(sources, target);
}

#ifdef REDFUSER_TESTS_WORKLOADS
TEST_P(CodegenCompile, UnusualAttentionKeepsItsRegisters) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  Sources sources;
  for (const tools::WorkloadMaker& maker : tools::accept_attention_workloads()) {
    add(sources, maker.name, Model::parse(maker.make().model), GetParam());
  }
  expect_registers(sources, GetParam());
}

// A few of redfuser-bench --sweep, whose launches are tested on the fake driver.
TEST_P(CodegenCompile, SweptKernelsHaveTheirStaticSharedMemory) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  const codegen::Target& target = GetParam();
  Sources sources;
  for (const auto& cases :
       {sampled(tools::row_sweep(), 10, 1), sampled(tools::attention_sweep(), 5, 1)}) {
    for (const tools::SweepCase& sweep_case : cases) {
      add(sources, sweep_case.name, Model::parse(sweep_case.model()), target);
    }
  }
  const std::vector<Compiler::Result> results = compiled(sources, target.architecture);
  size_t i = 0;
  for (const auto& [text, source] : sources) expect_static_shared(source, results[i++]);
}
#endif

INSTANTIATE_TEST_SUITE_P(Architectures, CodegenCompile, ::testing::ValuesIn(kTargets), target_name);
INSTANTIATE_TEST_SUITE_P(Parts, CodegenRegisters, ::testing::ValuesIn(every_case()), case_name);

}  // namespace
}  // namespace redfuser::codegen_tests
