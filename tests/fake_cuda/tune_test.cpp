// SessionOptions::tune: measured, chosen, stored and skipped kernels.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "codegen/core/gpu_step.h"
#include "fake_cuda/device_harness.h"

namespace redfuser::device_tests {
namespace {

namespace fs = std::filesystem;

// Attention of `layers` layers, each on the one before.
std::string attention(const std::string& tokens, int layers = 1) {
  const std::string type = "float16[1, 12, " + tokens + ", 64]";
  std::string body, query = "q";
  for (int i = 0; i < layers; ++i) {
    const std::string n = std::to_string(i);
    body += "s" + n + " = MatMul(" + query + ", kt) p" + n + " = Softmax<axis = -1>(s" + n + ") ";
    query = i + 1 < layers ? "y" + n : "y";
    body += query + " = MatMul(p" + n + ", v) ";
  }
  return "g (" + type + " q, " + type + " k, " + type + " v) => (" + type +
         " y) { kt = Transpose<perm = [0, 1, 3, 2]>(k) " + body + "}";
}

NamedTensors inputs(int64_t tokens) {
  NamedTensors result;
  for (const char* name : {"q", "k", "v"}) {
    result[name] = Tensor(DType::Float16, {1, 12, tokens, 64});
  }
  return result;
}

class Tune : public FakeGpu {
 protected:
  Tune() {
    folder_ = fs::path(testing::TempDir()) / fmt::format("redfuser_tune_{}", getpid());
    fs::remove_all(folder_);
    options.tune = true;
    options.kernel_cache = KernelCacheMode::On;
    options.kernel_cache_folder = folder_.string();
    // The default for 1024 tokens has two groups of rows.
    set_times(1.0, 0.8);
  }
  ~Tune() override { fs::remove_all(folder_); }

  // Of kernels with one group of rows, and with others.
  void set_times(double others, double one_group) {
    gpu->kernel_ms = [=, this](const std::string&, unsigned block) {
      ++measured_;
      return block == kOneGroup ? one_group : others;
    };
  }
  // Runs a session once and returns its tunings.
  std::vector<StepTuning> run(const std::string& graph, int64_t tokens) {
    measured_ = 0;
    gpu->launches.clear();
    Session session(compile(model(graph)), options);
    session.run(inputs(tokens));
    notes_ = session.notes();
    facts_ = session.step_facts();
    return session.tunings();
  }
  // The launches beside those of one run.
  bool measured_any() const { return gpu->launches.size() > 1; }
  fs::path entry() const {
    std::vector<fs::path> found;
    for (const auto& file : fs::directory_iterator(folder_ / "choices")) {
      found.push_back(file.path());
    }
    EXPECT_EQ(found.size(), 1u);
    return found.at(0);
  }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  int warnings() const {
    int count = 0;
    for (const std::string& note : notes_) count += note.starts_with("warning");
    return count;
  }

  static constexpr unsigned kOneGroup = 256;
  fs::path folder_;
  std::vector<std::string> notes_;
  std::vector<StepFacts> facts_;
  int measured_ = 0;
};

TEST_F(Tune, TakesTheFastest) {
  const std::vector<StepTuning> found = run(attention("1024"), 1024);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, "attention");
  EXPECT_FALSE(found[0].remembered);
  EXPECT_GE(found[0].measured.size(), 4u);
  EXPECT_EQ(found[0].measured[0].first, found[0].default_choice);
  EXPECT_FLOAT_EQ(found[0].default_us, 1000);
  EXPECT_FLOAT_EQ(found[0].us, 800);
  expect_mentions(found[0].default_choice, "attention_hopper groups=2");
  expect_mentions(found[0].choice, "attention_hopper groups=1");
  // The run itself is the last.
  EXPECT_EQ(gpu->launches.back().block, kOneGroup);
}

TEST_F(Tune, TheFactsHaveEstimatesAndMeasuredTimes) {
  const std::vector<StepTuning> found = run(attention("1024"), 1024);
  ASSERT_EQ(facts_.size(), 1u);
  const StepFacts& facts = facts_[0];
  EXPECT_EQ(facts.configuration, found.at(0).choice);
  EXPECT_DOUBLE_EQ(facts.measured_us.value_or(0), found[0].us);
  EXPECT_GT(facts.estimated_us.value_or(0), 0);
  size_t measured = 0;
  for (const StepCandidate& each : facts.candidates) measured += each.measured_us.has_value();
  EXPECT_EQ(measured, found[0].measured.size());
  ASSERT_EQ(facts.kernels.size(), 1u);
  expect_mentions(facts.kernels[0].configuration, "groups=1");
  options.tune = false;
  run(attention("1024"), 1024);
  expect_mentions(facts_.at(0).configuration, "attention_hopper groups=2");
  EXPECT_FALSE(facts_[0].measured_us);
}

TEST_F(Tune, TheFactsOfSizesKnownAtRunTimeAreThoseOfTheRun) {
  options.tune = false;
  Session session(compile(model(attention("n"))), options);
  EXPECT_TRUE(session.step_facts().empty());
  double last = 0;
  for (const int64_t tokens : {int64_t{256}, int64_t{4096}}) {
    session.run(inputs(tokens));
    const StepFacts facts = session.step_facts().at(0);
    EXPECT_GT(facts.estimated_us.value_or(0), last);
    last = facts.estimated_us.value_or(0);
    EXPECT_EQ(static_cast<int>(facts.kernels.size()), session.launches());
  }
}

TEST_F(Tune, TheDefaultStaysUnlessAnotherIsClearlyFaster) {
  struct Case {
    double others, one_group;
    bool kept;
  };
  for (const Case& c : {Case{1, 1, true}, Case{1, 0.99, true}, Case{1, 0.97, false}}) {
    options.kernel_cache = KernelCacheMode::Off;
    set_times(c.others, c.one_group);
    const std::vector<StepTuning> found = run(attention("1024"), 1024);
    EXPECT_EQ(found.at(0).choice == found.at(0).default_choice, c.kept) << c.one_group;
    EXPECT_EQ(gpu->launches.back().block == kOneGroup, !c.kept) << c.one_group;
    EXPECT_EQ(found[0].us == found[0].default_us, c.kept) << c.one_group;
  }
}

TEST_F(Tune, WithoutItNothingIsMeasuredNorRead) {
  run(attention("1024"), 1024);
  options.tune = false;
  EXPECT_TRUE(run(attention("1024"), 1024).empty());
  EXPECT_FALSE(measured_any());
  EXPECT_NE(gpu->launches.back().block, kOneGroup);
}

TEST_F(Tune, RemembersBetweenSessions) {
  const std::vector<StepTuning> first = run(attention("1024"), 1024);
  EXPECT_TRUE(measured_any());
  set_times(0.5, 1.0);  // which nothing asks for any more
  const std::vector<StepTuning> second = run(attention("1024"), 1024);
  EXPECT_FALSE(measured_any());
  ASSERT_EQ(second.size(), 1u);
  EXPECT_TRUE(second[0].remembered);
  EXPECT_EQ(second[0].choice, first.at(0).choice);
  EXPECT_EQ(second[0].measured, first[0].measured);
  EXPECT_FLOAT_EQ(second[0].us, 800);
  EXPECT_FLOAT_EQ(second[0].default_us, 1000);
  EXPECT_EQ(gpu->launches.back().block, kOneGroup);
  EXPECT_EQ(warnings(), 0);
  // Nothing is left of the writing.
  EXPECT_EQ(entry().extension(), ".json");
}

TEST_F(Tune, ADamagedEntryIsMeasuredAgainWithOneWarning) {
  run(attention("1024"), 1024);
  const std::string whole = read(entry());
  const auto with = [&](const std::string& part, const std::string& instead) {
    std::string text = whole;
    const size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), instead);
  };
  const std::string cases[] = {"",
                               "damaged",
                               "[]",
                               whole.substr(0, whole.size() / 2),
                               with("\"choice\"", "\"chosen\""),
                               with("\"us\": 800", "\"us\": \"fast\""),
                               with("\"measured\"", "\"guessed\""),
                               with("\"us\": 800", "\"us\": -1"),
                               with("groups=1", "groups=9"),
                               with("\"task\": \"attention", "\"task\": \"detention")};
  for (const std::string& text : cases) {
    std::ofstream(entry()) << text;
    const std::vector<StepTuning> found = run(attention("1024"), 1024);
    EXPECT_TRUE(measured_any()) << text;
    EXPECT_FALSE(found.at(0).remembered) << text;
    EXPECT_EQ(warnings(), 1) << text;
    EXPECT_EQ(read(entry()), whole) << text;
  }
}

TEST_F(Tune, ACacheThatIsReadOnlyIsNotWritten) {
  options.kernel_cache = KernelCacheMode::ReadOnly;
  run(attention("1024"), 1024);
  EXPECT_TRUE(measured_any());
  EXPECT_FALSE(fs::exists(folder_ / "choices"));
  options.kernel_cache = KernelCacheMode::On;
  run(attention("1024"), 1024);
  options.kernel_cache = KernelCacheMode::ReadOnly;
  EXPECT_TRUE(run(attention("1024"), 1024).at(0).remembered);
  EXPECT_FALSE(measured_any());
}

TEST_F(Tune, ACacheThatIsOffIsNeitherReadNorWritten) {
  run(attention("1024"), 1024);
  const fs::file_time_type written = fs::last_write_time(entry());
  options.kernel_cache = KernelCacheMode::Off;
  EXPECT_FALSE(run(attention("1024"), 1024).at(0).remembered);
  EXPECT_TRUE(measured_any());
  EXPECT_EQ(fs::last_write_time(entry()), written);
}

TEST_F(Tune, AFolderThatCannotBeWrittenIsAWarning) {
  std::ofstream(folder_) << "a file";
  const std::vector<StepTuning> found = run(attention("1024"), 1024);
  expect_mentions(found.at(0).choice, "groups=1");
  expect_mentions(notes_.at(notes_.size() - 3), "measured choices cannot be kept in ");
}

TEST_F(Tune, EqualStepsAreMeasuredOnce) {
  run(attention("1024"), 1024);
  const size_t one = gpu->launches.size();
  fs::remove_all(folder_);
  const std::vector<StepTuning> found = run(attention("1024", 3), 1024);
  ASSERT_EQ(found.size(), 3u);
  // Two more steps, each run to make the next one's inputs and in the run itself.
  EXPECT_EQ(gpu->launches.size(), one + 4);
  EXPECT_FALSE(found[0].remembered);
  EXPECT_TRUE(found[1].remembered);
  EXPECT_EQ(found[2].choice, found[0].choice);
  EXPECT_EQ(gpu->launches.back().block, kOneGroup);
  entry();
}

TEST_F(Tune, LengthsOfOneClassAreMeasuredOnce) {
  options.kernel_cache = KernelCacheMode::Off;
  Session session(compile(model(attention("n"))), options);
  const auto launches_of = [&](int64_t tokens) {
    gpu->launches.clear();
    const int recorded = gpu->recorded;
    session.run(inputs(tokens));
    EXPECT_EQ(session.tunings().size(), 1u) << tokens;
    return gpu->launches.size() + static_cast<size_t>(gpu->recorded - recorded);
  };
  EXPECT_GT(launches_of(1001), 1u);
  EXPECT_EQ(launches_of(1002), 1u);
  EXPECT_EQ(launches_of(1024), 1u);
  EXPECT_GT(launches_of(2000), 1u);
  EXPECT_EQ(launches_of(2001), 1u);
}

TEST_F(Tune, WhatDoesNotCompileIsLeftOut) {
  // The kernels of one group say so in their threads.
  setenv("FAKE_NVRTC_FAILS", "__launch_bounds__(256", 1);
  const std::vector<StepTuning> found = run(attention("1024"), 1024);
  unsetenv("FAKE_NVRTC_FAILS");
  EXPECT_EQ(found.at(0).choice, found.at(0).default_choice);
  EXPECT_GE(warnings(), 1);
  for (const std::string& note : notes_) {
    if (!note.starts_with("warning")) continue;
    expect_mentions(note, "is not computed by attention_hopper groups=1");
    expect_mentions(note, "a kernel does not compile");
  }
}

TEST_F(Tune, WhatDoesNotLaunchIsLeftOut) {
  set_times(1.0, -1);
  const std::vector<StepTuning> found = run(attention("1024"), 1024);
  EXPECT_EQ(found.at(0).choice, found.at(0).default_choice);
  EXPECT_GE(warnings(), 1);
  expect_mentions(notes_.at(1), "is not computed by attention_hopper groups=1");
  expect_mentions(notes_.at(1), "a fake error");
}

TEST_F(Tune, NothingIsMeasuredOnTheCallersMemory) {
  Session session(compile(model(attention("1024"))), options);
  NamedDeviceTensors given;
  std::vector<Tensor> memory;
  std::set<uint64_t> addresses;
  for (const char* name : {"q", "k", "v", "y"}) {
    memory.push_back(Tensor(DType::Float16, {1, 12, 1024, 64}));
    given[name] = {DType::Float16, memory.back().dims(), memory.back().mutable_data()};
    addresses.insert(reinterpret_cast<uint64_t>(given[name].data));
  }
  const DeviceTensor y = given.extract("y").mapped();
  session.enqueue(given, {{"y", y}}, nullptr);
  ASSERT_GT(gpu->launches.size(), 1u);
  EXPECT_EQ(session.tunings().size(), 1u);
  EXPECT_EQ(gpu->launches.back().block, kOneGroup);
  gpu->launches.clear();
  session.enqueue(given, {{"y", y}}, nullptr);
  EXPECT_EQ(gpu->replays, 1);
}

TEST_F(Tune, AllocatesNothingAfterTheFirstRunOfAShape) {
  Session session(compile(model(attention("1024"))), options);
  session.run(inputs(1024));
  const int device = gpu->allocations;
  const size_t used = gpu->used;
  for (int i = 0; i < 3; ++i) session.run(inputs(1024));
  EXPECT_EQ(gpu->allocations, device);
  EXPECT_EQ(gpu->used, used);
  constexpr int64_t kCounters = codegen::kLaunchCounters * sizeof(unsigned);
  EXPECT_EQ(session.peak_bytes(), static_cast<int64_t>(used) - kCounters);
}

// Known sizes of halves: the kernel of ours is one of the choices.
const char* const kProduct =
    "g (float16[512, 1024] q, float16[1024, 1024] w) => (float16[512, 1024] y) { y = MatMul(q, w) "
    "}";

TEST_F(Tune, TakesTheFastestOfTheLibrarysProposals) {
  const NamedTensors given = {{"q", Tensor(DType::Float16, {512, 1024})},
                              {"w", Tensor(DType::Float16, {1024, 1024})}};
  struct Case {
    std::vector<double> times;  // of the first proposal and of the others
    const char* choice;
  };
  gpu->kernel_ms = [](const std::string& text, unsigned) {
    return text.find("product_tile_") == std::string::npos ? 30.0 : 9.0;
  };
  for (const Case& c :
       {Case{{1, 1, 0.5, 1}, "library algorithm=2"}, Case{{1, 1, 1, 0.99}, "library algorithm=0"},
        Case{{1}, "library algorithm=0"}, Case{{20, 20}, "product_tile"}}) {
    options.kernel_cache = KernelCacheMode::Off;
    gpu->proposals = static_cast<int>(c.times.size());
    gpu->product_ms = [&](int proposal) { return c.times.at(static_cast<size_t>(proposal)); };
    gpu->launches.clear();
    Session session(compile(model(kProduct)), options);
    session.run(given);
    ASSERT_EQ(session.tunings().size(), 1u);
    const StepTuning& found = session.tunings()[0];
    EXPECT_EQ(found.kind, "product");
    EXPECT_EQ(found.choice, c.choice);
    // The library's first algorithms beside kernels of ours.
    constexpr size_t kMostAlgorithms = 3;
    size_t algorithms = 0, tiles = 0;
    for (const auto& [choice, time] : found.measured) {
      algorithms += choice.starts_with("library");
      tiles += choice == "product_tile";
    }
    EXPECT_EQ(algorithms, std::min(c.times.size(), kMostAlgorithms));
    EXPECT_EQ(tiles, 1u);
    EXPECT_EQ(gpu->launches.back().block == 0, found.choice != "product_tile");
  }
}

}  // namespace
}  // namespace redfuser::device_tests
