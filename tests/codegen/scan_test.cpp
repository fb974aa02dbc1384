// Running reductions: the family that computes them, and that every configuration compiles and
// fits.
#include <algorithm>

#include "codegen/scan/scan_cost.h"
#include "support/codegen_harness.h"
#include "support/scan_cases.h"

namespace redfuser::codegen_tests {
namespace {

using redfuser::testing::kScanCases;
using redfuser::testing::scan_graph;
using redfuser::testing::ScanCase;

// The slow path of a division is a call, around which some assemblers save registers.
constexpr int kCall = 80;

class CodegenScan : public ::testing::TestWithParam<ScanCase> {};

TEST_P(CodegenScan, CompilesForOpenSizes) {
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel model = generate_model(Model::parse(scan_graph(GetParam())), target);
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      EXPECT_TRUE(kernel.family.starts_with("scan_")) << kernel.family;
    }
    if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
    expect_compiles(model.kernels, target.architecture, kCall);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CodegenScan, ::testing::ValuesIn(kScanCases),
                         [](const auto& info) { return std::string(info.param.name); });

struct Sizes {
  const char* m;
  const char* n;
  const char* family;  // of the default's last kernel for rows, on an H100
};
const Sizes kSizes[] = {{"2", "1048576", "scan_lines_shared"},
                        {"512", "32000", "scan_lines"},
                        {"65536", "128", "scan_lines"},
                        {"16", "50001", "scan_lines_shared"}};

// A step's choices for given sizes.
void for_choices(const std::string& graph, const codegen::Target& target,
                 const std::function<void(const codegen::GpuStep&)>& each) {
  const Program program = compile(Model::parse(graph));
  const runtime::CompiledProgram& compiled = *program.handle();
  const ir::Graph copy = clone(compiled.graph());
  for (const fuse::Step& step : compiled.plan.steps) {
    const auto choices = kernel_configs(copy, step, target, {});
    EXPECT_FALSE(choices.empty());
    for (const auto& [choice, time] : choices) {
      EXPECT_GT(time, 0) << to_string(choice);
      each(generate(copy, step, target, choice));
    }
  }
}

TEST(CodegenScanSizes, ChooseAFormAndCompile) {
  for (const Sizes& sizes : kSizes) {
    for (const size_t number : {size_t{0}, size_t{8}}) {
      const std::string graph = scan_graph(kScanCases[number], sizes.m, sizes.n);
      for (const codegen::Target& target : kTargets) {
        const GeneratedModel model = generate_model(Model::parse(graph), target);
        if (number == 0 && target.architecture == 90) {
          EXPECT_EQ(model.kernels.back().family, sizes.family)
              << sizes.m << " x " << sizes.n << " on " << target.architecture;
        }
        std::vector<codegen::KernelLaunch> kernels;
        for_choices(graph, target, [&](const codegen::GpuStep& step) {
          for (const codegen::GpuCall& call : step.calls) {
            kernels.push_back(std::get<codegen::KernelLaunch>(call));
            EXPECT_LE(kernels.back().static_shared, 48 << 10);
          }
        });
        if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
        expect_compiles(kernels, target.architecture, kCall);
      }
    }
  }
}

// More lines than blocks at once leave nothing to share.
TEST(CodegenScanSizes, EverySizeHasAConfiguration) {
  for (const bool columns : {false, true}) {
    for (const int bytes : {4, 8}) {
      codegen::ScanFacts facts;
      facts.columns = columns;
      facts.state_bytes = bytes;
      for (int64_t beside = 1; beside <= (columns ? 40 : 1); ++beside) {
        for (int64_t length = 1; length <= 300; length += 1 + length / 8) {
          EXPECT_FALSE(codegen::scan_configs(facts, {2, beside, length}).empty())
              << columns << ": " << length << " x " << beside;
        }
      }
    }
  }
}

TEST(CodegenScanSizes, FewLongLinesAreShared) {
  const codegen::Target target;
  for (const bool columns : {false, true}) {
    codegen::ScanFacts facts;
    facts.columns = columns;
    const auto shares = [&](int64_t lines, int64_t length) {
      const codegen::ScanSizes sizes =
          columns ? codegen::ScanSizes{1, lines, length} : codegen::ScanSizes{lines, 1, length};
      double own = HUGE_VAL, shared = HUGE_VAL;
      for (const codegen::ScanConfig& c : codegen::scan_configs(facts, sizes)) {
        double& least = c.shared ? shared : own;
        least = std::min(least, codegen::scan_time(target, facts, c, sizes));
      }
      return shared < own;
    };
    EXPECT_TRUE(shares(4, 1 << 20)) << columns;
    EXPECT_FALSE(shares(1 << 16, 512)) << columns;
    EXPECT_FALSE(shares(4, 256)) << columns;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
