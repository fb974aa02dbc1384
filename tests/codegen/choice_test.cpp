// The choices of tuning: each gives its kernel again, fits and compiles.
#include <algorithm>

#include "codegen/core/kernel_config.h"
#include "codegen/rows/single_pass_select.h"
#include "codegen/select/generate.h"
#include "ir/evaluate.h"
#include "support/codegen_harness.h"
#include "support/test_paths.h"
#ifdef REDFUSER_TESTS_WORKLOADS
#include "bench_workload.h"
#endif

namespace redfuser::codegen_tests {
namespace {

// A step's default form and that of every choice, with the program that owns their expressions.
struct Forms {
  Program program;
  codegen::GpuStep chosen;
  std::vector<codegen::KernelConfig> choices;
  std::vector<codegen::GpuStep> forms;
};

std::vector<int64_t> symbols_of(const Program& program, int64_t size) {
  return std::vector<int64_t>(program.handle()->symbol_names.size() + 1024, size);
}

// Of every step with choices, for symbols of this size.
std::vector<Forms> forms_of(const Model& model, const codegen::Target& target, int64_t size = 128) {
  CompileOptions options;
  options.certify = false;
  const Program program = compile(model, options);
  const runtime::CompiledProgram& compiled = *program.handle();
  std::vector<Forms> result;
  for (const fuse::Step& step : compiled.plan.steps) {
    Forms forms{program, {}, {}, {}};
    for (const codegen::Candidate& candidate :
         kernel_configs(compiled.graph(), step, target, symbols_of(program, size))) {
      forms.choices.push_back(candidate.choice);
    }
    if (forms.choices.empty()) continue;
    forms.chosen = generate(compiled.graph(), step, target);
    for (const codegen::KernelConfig& choice : forms.choices) {
      forms.forms.push_back(generate(compiled.graph(), step, target, choice));
    }
    result.push_back(std::move(forms));
  }
  return result;
}

// The calls as text, to compare forms.
std::string text_of(const codegen::GpuStep& step, const std::vector<int64_t>& symbols) {
  std::string text;
  for (const codegen::GpuCall& call : step.calls) {
    if (const auto* product = std::get_if<codegen::ProductCall>(&call)) {
      text += fmt::format("algorithm {}\n", product->algorithm);
      continue;
    }
    const auto& launch = std::get<codegen::KernelLaunch>(call);
    const int64_t blocks = evaluate_size(launch.grid[0], symbols);
    if (blocks == 0) continue;
    text += fmt::format("{} {} {} {} {}\n", blocks, launch.block, launch.shared, launch.cluster,
                        launch.source);
    for (const ir::Expr size : launch.sizes)
      text += fmt::format("{} ", evaluate_size(size, symbols));
  }
  return text;
}

void expect_sound(const std::string& name, const Forms& forms, const codegen::Target& target,
                  int64_t size) {
  const std::vector<int64_t> symbols = symbols_of(forms.program, size);
  EXPECT_GE(forms.choices.size(), 2u) << name;
  EXPECT_LE(forms.choices.size(), codegen::kMaxChoices) << name;
  EXPECT_EQ(text_of(forms.forms[0], symbols), text_of(forms.chosen, symbols))
      << name << ": " << to_string(forms.choices[0]);
  std::set<std::string> texts, names;
  for (size_t i = 0; i < forms.forms.size(); ++i) {
    const std::string choice = to_string(forms.choices[i]);
    EXPECT_TRUE(names.insert(choice).second) << name << ": " << choice;
    EXPECT_TRUE(texts.insert(text_of(forms.forms[i], symbols)).second) << name << ": " << choice;
    for (const codegen::GpuCall& call : forms.forms[i].calls) {
      const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
      if (launch == nullptr) continue;
      EXPECT_LE(launch->shared, target.shared_bytes) << name << ": " << choice;
    }
  }
}

#ifdef REDFUSER_TESTS_WORKLOADS

std::vector<tools::WorkloadMaker> workloads() {
  std::vector<tools::WorkloadMaker> all = tools::attention_workloads(true);
  for (const auto& suite : {tools::decode_workloads(true), tools::row_workloads(false),
                            tools::select_workloads(true)}) {
    all.insert(all.end(), suite.begin(), suite.end());
  }
  return all;
}

class CodegenChoice : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(CodegenChoice, TheFirstIsTheDefaultAndTheOthersDiffer) {
  size_t found = 0;
  for (const tools::WorkloadMaker& maker : workloads()) {
    const Model model = Model::parse(maker.make().model);
    for (const Forms& forms : forms_of(model, GetParam())) {
      expect_sound(maker.name, forms, GetParam(), 128);
      ++found;
    }
  }
  EXPECT_GE(found, 8u);
}

// Two others of every workload.
TEST_P(CodegenChoice, OthersKeepTheirRegisters) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  constexpr size_t kOthers = 2;
  // The slow path of a division is a call, around which some assemblers save registers.
  constexpr int kCall = 12;
  std::map<std::string, std::string> origins;  // by text
  for (const tools::WorkloadMaker& maker : workloads()) {
    const Model model = Model::parse(maker.make().model);
    for (const Forms& forms : forms_of(model, GetParam())) {
      for (size_t i = 1; i < std::min(kOthers + 1, forms.forms.size()); ++i) {
        for (const codegen::GpuCall& call : forms.forms[i].calls) {
          const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
          if (launch == nullptr) continue;
          origins.try_emplace(launch->source, maker.name + " by " + to_string(forms.choices[i]));
        }
      }
    }
  }
  const auto results = compile_all(origins, GetParam().architecture);
  size_t i = 0;
  for (const auto& [text, origin] : origins) {
    const std::string& log = results[i].log;
    EXPECT_NE(log.find("bytes stack frame"), std::string::npos) << log;
    EXPECT_EQ(log.find("instructions are serialized"), std::string::npos) << log;
    EXPECT_LE(results[i++].spilled, kCall) << origin;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CodegenChoice, ::testing::ValuesIn(kTargets), target_name);

#endif

// Sizes of run time: the family by the sizes at hand, the kernel for any.
TEST(CodegenChoice, SizesOfRunTime) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float16[1, 8, n, 64] q, float16[1, 8, m, 64] "
      "k, float16[1, 8, m, 64] v) => (float16[1, 8, n, 64] y) { kt = Transpose<perm = [0, 1, 3, "
      "2]>(k) s = MatMul(q, kt) p = Softmax<axis = -1>(s) y = MatMul(p, v) }");
  struct Case {
    int64_t size;
    const char* family;
  };
  for (const Case& c : {Case{16, "attention_split"}, Case{1024, "attention_hopper"}}) {
    const std::vector<Forms> all = forms_of(model, {}, c.size);
    ASSERT_EQ(all.size(), 1u) << c.size;
    EXPECT_EQ(all[0].choices[0].family, c.family);
    expect_sound(c.family, all[0], {}, c.size);
    for (size_t i = 0; i < all[0].forms.size(); ++i) {
      if (!all[0].choices[i].family.starts_with("attention")) continue;
      const codegen::GpuStep& form = all[0].forms[i];
      ASSERT_EQ(form.calls.size(), 1u);
      // The condition on sizes is the default's alone.
      const ir::Expr grid = std::get<codegen::KernelLaunch>(form.calls[0]).grid[0];
      EXPECT_GT(evaluate_size(grid, symbols_of(all[0].program, 16)), 0);
      EXPECT_GT(evaluate_size(grid, symbols_of(all[0].program, 1024)), 0);
    }
  }
}

// Rows of a length of run time: those that the choice has no room for have the default's kernels.
TEST(CodegenChoice, LengthsOfRunTime) {
  for (const std::string& graph :
       {std::string("g (float16[m, n] x) => (float16[m, n] y) { y = Softmax<axis = -1>(x) }"),
        std::string("g (float16[m, n] x) => (float16[m] y) {"
                    " last = Constant<value = int64[1] {-1}>() y = ReduceLogSumExp<keepdims = "
                    "0>(x, last) }")}) {
    const Model model = Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph);
    for (const int64_t size : {1000, 50000}) {
      const std::vector<Forms> all = forms_of(model, {}, size);
      ASSERT_EQ(all.size(), 1u) << graph;
      expect_sound(graph, all[0], {}, size);
      for (size_t i = 0; i < all[0].forms.size(); ++i) {
        if (all[0].choices[i].family == codegen::kDivisionFamily) continue;
        for (const int64_t length : {1, 999, 1001, 40000, 400000}) {
          std::vector<int64_t> symbols = symbols_of(all[0].program, length);
          int64_t launches = 0;
          bool covered = false;
          for (const codegen::GpuCall& call : all[0].forms[i].calls) {
            const auto& launch = std::get<codegen::KernelLaunch>(call);
            if (evaluate_size(launch.grid[0], symbols) == 0) continue;
            ++launches;
            covered |= launch.family != "row_partials";
          }
          // The chosen kernel comes first.
          const codegen::KernelConfig& choice = all[0].choices[i];
          if (choice.family == "row" && choice.at("whole") != 0) {
            constexpr int64_t kWidth = 8;
            const auto& launch = std::get<codegen::KernelLaunch>(all[0].forms[i].calls[0]);
            EXPECT_EQ(
                evaluate_size(launch.grid[0], symbols) > 0,
                length <= kWidth * choice.at("lanes") * choice.at("chunks") * choice.at("cluster"))
                << to_string(choice) << " " << length;
          }
          EXPECT_TRUE(covered) << to_string(all[0].choices[i]) << " " << length;
          EXPECT_LE(launches, 2) << to_string(all[0].choices[i]) << " " << length;
        }
      }
    }
  }
}

// Rows without elements have results all the same, and no segments.
TEST(CodegenChoice, EmptyRowsOfRunTime) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float16[5, n] x) => (float16[5] y) {"
      " last = Constant<value = int64[1] {-1}>() y = ReduceLogSumExp<keepdims = 0>(x, last) }");
  const std::vector<Forms> all = forms_of(model, {}, 1 << 20);
  ASSERT_EQ(all.size(), 1u);
  const std::vector<int64_t> symbols = symbols_of(all[0].program, 0);
  bool segments = false;
  for (size_t i = 0; i < all[0].forms.size(); ++i) {
    segments |= all[0].choices[i].family == "row_segments";
    int64_t launches = 0;
    for (const codegen::GpuCall& call : all[0].forms[i].calls) {
      const auto& launch = std::get<codegen::KernelLaunch>(call);
      if (evaluate_size(launch.grid[0], symbols) == 0) continue;
      ++launches;
      EXPECT_NE(launch.family, "row_segments") << to_string(all[0].choices[i]);
    }
    EXPECT_EQ(launches, 1) << to_string(all[0].choices[i]);
  }
  EXPECT_TRUE(segments);
}

// The blocks of a row meet at a counter of its own. (Rows that have none could not lie in memory.)
TEST(CodegenChoice, SegmentsOfRowsWithoutCounters) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float16[m, n] x) => (float16[m] y) {"
      " last = Constant<value = int64[1] {-1}>() y = ReduceLogSumExp<keepdims = 0>(x, last) }");
  const Program program = compile(model);
  const runtime::CompiledProgram& compiled = *program.handle();
  auto blocks_of = [&](int64_t rows, int64_t length) {
    std::vector<int64_t> symbols = symbols_of(program, length);
    for (size_t i = 0; i < compiled.symbol_names.size(); ++i) {
      if (compiled.symbol_names[i] == "m") symbols[i] = rows;
    }
    int64_t blocks = 0;
    for (const fuse::Step& step : compiled.plan.steps) {
      for (const codegen::GpuCall& call :
           generate(compiled.graph(), step, codegen::Target{}).calls) {
        const auto& launch = std::get<codegen::KernelLaunch>(call);
        if (launch.family == "row_segments") blocks += evaluate_size(launch.grid[0], symbols);
      }
    }
    return blocks;
  };
  constexpr int64_t kEndless = (int64_t{1} << 28) + 8;
  EXPECT_GT(blocks_of(64, 131072), 64);
  EXPECT_EQ(blocks_of(4096, 131072), 0);
  EXPECT_GT(blocks_of(codegen::kLaunchCounters, kEndless), codegen::kLaunchCounters);
  EXPECT_LT(blocks_of(codegen::kLaunchCounters, kEndless), INT32_MAX);
  EXPECT_GT(blocks_of(codegen::kLaunchCounters + 1, kEndless), INT32_MAX);
  codegen::SinglePassFacts sums;
  auto is_segments = [](const codegen::Candidate& c) { return c.choice.family == "row_segments"; };
  for (const int64_t rows : {codegen::kLaunchCounters, codegen::kLaunchCounters + 1}) {
    const std::vector<codegen::Candidate> all = single_pass_candidates({}, sums, rows, 1 << 20);
    EXPECT_EQ(std::any_of(all.begin(), all.end(), is_segments), rows == codegen::kLaunchCounters);
  }
}

// The library's proposals and, of known sizes, the kernel of ours: with and without an epilogue.
TEST(CodegenChoice, Products) {
  struct Case {
    std::string type, rows, body, chosen;
    size_t library, ours;  // choices of the library, and kernels of ours in all choices
  };
  constexpr size_t kAll = codegen::kProductAlgorithms;
  const std::string plain = "y = MatMul(x, w)", map = "p = MatMul(x, w) t = Tanh(p) y = Mul(t, p)";
  const Case cases[] = {
      {"float16", "4096", plain, "library algorithm=0", kAll, 1},
      {"float16", "4096", map, "product_tile", kAll, 1},
      {"float16", "n", map, "product_cluster rows=64 lines=64 columns=64 blocks=2 resident=1", 3,
       25},
      {"float", "4096", plain, "product_cluster rows=128 lines=128 columns=128 blocks=1 resident=1",
       3, 5},
  };
  for (const Case& c : cases) {
    const Model model =
        Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> g (" + c.type + "[" + c.rows +
                     ", 1024] x, " + c.type + "[1024, 1024] w) => (y) { " + c.body + " }");
    const std::vector<Forms> all = forms_of(model, {});
    ASSERT_EQ(all.size(), 1u) << c.body;
    expect_sound(c.body, all[0], {}, 128);
    EXPECT_EQ(to_string(all[0].choices[0]), c.chosen);
    std::vector<codegen::KernelLaunch> ours;
    size_t library = 0;
    for (size_t i = 0; i < all[0].forms.size(); ++i) {
      library += all[0].choices[i].family == codegen::kLibraryFamily;
      if (all[0].choices[i].family == codegen::kLibraryFamily) continue;
      for (const codegen::GpuCall& call : all[0].forms[i].calls) {
        const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
        if (launch != nullptr) ours.push_back(*launch);
      }
    }
    EXPECT_EQ(library, c.library);
    EXPECT_EQ(ours.size(), c.ours) << c.body;
    if (Compiler::find()) expect_compiles(ours, 90);
  }
}

TEST(CodegenChoice, NothingToChooseForEmptySizes) {
  const std::string type = "float16[0, 8, 128, 64]";
  const Model model = Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> g (" + type +
                                   " q, " + type + " k, " + type +
                                   " v) => (y) { kt = Transpose<perm = [0, 1, 3, 2]>(k) s = "
                                   "MatMul(q, kt) p = Softmax<axis = -1>(s) y = MatMul(p, v) }");
  EXPECT_TRUE(forms_of(model, {}).empty());
}

TEST(CodegenChoice, BestChoicesAreEachOnceAndTheChosenFirst) {
  const auto choice = [](int keys) { return codegen::KernelConfig{"f", {{"keys", keys}}}; };
  std::vector<codegen::Candidate> candidates;
  for (const int keys : {5, 3, 4, 3, 9, 1, 2, 6, 7, 8}) {
    candidates.push_back({choice(keys), static_cast<double>(keys)});
  }
  const std::vector<codegen::Candidate> best = best_choices({{choice(4), 9}}, candidates);
  std::vector<int> keys;
  for (const codegen::Candidate& c : best) keys.push_back(c.choice.at("keys"));
  EXPECT_EQ(keys, (std::vector<int>{4, 1, 2, 3, 5, 6, 7, 8}));
  EXPECT_EQ(to_string(best[0].choice), "f keys=4");
  EXPECT_THROW(best[0].choice.at("stages"), InternalError);
}

}  // namespace
}  // namespace redfuser::codegen_tests
