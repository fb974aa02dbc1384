// What --explain says of the steps: the family that computes each, and why no other does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "redfuser/redfuser.h"

namespace redfuser {
namespace {

using Json = nlohmann::json;

Program program_of(const std::string& graph) {
  return compile(Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph));
}

Json explained(const Program& program, const std::string& target) {
  return Json::parse(program.explain(program.step_facts(target), target));
}

const char* const kSoftmax = "g (float16[4096, 1024] x) => (y) { y = Softmax<axis = -1>(x) }";
// Heads of fp32 that no attention family takes.
const char* const kWideHeads =
    "g (float[1, 2, 128, 320] q, float[1, 2, 320, 128] k, float[1, 2, 128, 320] v) => (y) { "
    "s = MatMul(q, k) p = Softmax<axis = -1>(s) y = MatMul(p, v) }";

TEST(Explain, NamesTheFamilyItsTimeAndEveryRefusal) {
  const Json report = explained(program_of(kSoftmax), "sm_90a");
  EXPECT_EQ(report["device"], "sm_90a");
  ASSERT_EQ(report["steps"].size(), 1u);
  const Json& step = report["steps"][0];
  EXPECT_EQ(step["region"], 0);
  EXPECT_EQ(step["family"], "row");
  EXPECT_TRUE(step["configuration"].get<std::string>().starts_with("row lanes=")) << step;
  EXPECT_GT(step["estimated_us"], 2.0);
  EXPECT_TRUE(step["measured_us"].is_null());
  EXPECT_FALSE(step["divided"]);
  const Json& candidates = step["candidates"];
  EXPECT_EQ(candidates[0]["family"], "row");
  EXPECT_GE(candidates.size(), 6u) << candidates.dump(1);
  for (size_t i = 1; i < candidates.size(); ++i) {
    const bool answered = candidates[i]["estimated_us"].is_number() ||
                          !candidates[i]["refusal"].get<std::string>().empty();
    EXPECT_TRUE(answered) << candidates[i];
  }
}

TEST(Explain, ARegionThatIsDividedIsSaidToBe) {
  const Json step = explained(program_of(kWideHeads), "sm_90a")["steps"][0];
  EXPECT_EQ(step["kind"], "attention");
  EXPECT_EQ(step["family"], "products apart");
  EXPECT_TRUE(step["divided"]);
  EXPECT_GE(step["kernels"].size(), 3u);
  double least = step["estimated_us"];
  for (const Json& other : step["candidates"]) {
    if (other["estimated_us"].is_number()) EXPECT_LE(least, other["estimated_us"].get<double>());
  }
}

TEST(Explain, EveryStepHasAFamily) {
  const Json report = explained(
      program_of("g (float16[64, 256] x, float16[256, 512] w) => (y, r) { m = MatMul(x, w) "
                 "y = Tanh(m) a = Constant<value = int64[1] {1}>() r = ReduceSum(x, a) }"),
      "sm_90a");
  std::set<std::string> families;
  for (const Json& step : report["steps"]) {
    EXPECT_GT(step["estimated_us"], 0.0) << step.dump(1);
    EXPECT_FALSE(step["kernels"].empty()) << step.dump(1);
    families.insert(step["family"]);
  }
  EXPECT_TRUE(families.count("row")) << report.dump(1);
  EXPECT_TRUE(families.count("product_cluster")) << report.dump(1);
}

TEST(Explain, SizesThatTheFileLeavesOpenHaveNoEstimate) {
  const Program program = program_of(
      "g (float[n, m] x) => (y) { a = Exp(x) b = Constant<value = int64[1] {1}>() "
      "s = ReduceSum(a, b) y = Div(a, s) }");
  for (const StepFacts& facts : program.step_facts("sm_90a")) {
    EXPECT_FALSE(facts.family.empty());
    EXPECT_FALSE(facts.estimated_us);
    for (const StepCandidate& each : facts.candidates) EXPECT_FALSE(each.estimated_us);
  }
  EXPECT_THROW(program.step_facts("sm_1"), UserError);
}

TEST(Explain, WhatNoKernelComputesSaysSo) {
  const Program program = program_of("g (string[n] x) => (y) { y = StringConcat(x, x) }");
  const std::vector<StepFacts> facts = program.step_facts("sm_80");
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_NE(facts[0].refusal.find("StringConcat"), std::string::npos) << facts[0].refusal;
}

TEST(Explain, OnTheCpuTheFormIsThatOfTheRun) {
  const Program program = program_of("g (float[n, 300] x) => (y) { y = Softmax<axis = -1>(x) }");
  Session session(program, {.device = "cpu", .threads = 1});
  Tensor x(DType::Float32, {100, 300});
  std::fill_n(x.as<float>(), x.size(), 1.0f);
  session.run({{"x", x}});
  const std::vector<StepFacts> facts = session.step_facts();
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].family, facts[0].candidates.at(0).family);
  EXPECT_FALSE(facts[0].configuration.empty());
  EXPECT_GT(facts[0].estimated_us.value_or(0), 0);
  std::vector<std::string> families;
  for (const StepCandidate& candidate : facts[0].candidates) {
    families.push_back(candidate.family);
    EXPECT_TRUE(candidate.refusal.empty() || !candidate.estimated_us) << candidate.family;
    if (candidate.estimated_us) EXPECT_GE(*candidate.estimated_us, *facts[0].estimated_us);
  }
  std::sort(families.begin(), families.end());
  EXPECT_EQ(families, (std::vector<std::string>{"parts", "streamed", "unfused", "whole_rows",
                                                "whole_rows_by_parts"}));
}

TEST(Explain, OnTheCpuEveryFamilyIsMeasured) {
  const Program program = program_of("g (float[n, 300] x) => (y) { y = Softmax<axis = -1>(x) }");
  Session session(program, {.device = "cpu", .threads = 1, .tune = true});
  Session plain(program, {.device = "cpu", .threads = 1});
  Tensor x(DType::Float32, {10, 300});
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i % 7);
  const Tensor tuned = session.run({{"x", x}}).at("y");
  const Tensor expected = plain.run({{"x", x}}).at("y");
  for (int64_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(tuned.as<float>()[i], expected.as<float>()[i], 1e-6) << i;
  }
  ASSERT_EQ(session.tunings().size(), 1u);
  const StepTuning& tuning = session.tunings()[0];
  EXPECT_EQ(tuning.default_choice, plain.step_facts()[0].configuration);
  std::set<std::string> families;
  double least = HUGE_VAL;
  for (const auto& [choice, us] : tuning.measured) {
    families.insert(choice.substr(0, choice.find(' ')));
    least = std::min(least, us);
  }
  EXPECT_EQ(families, (std::set<std::string>{"streamed", "unfused", "whole_rows"}));
  EXPECT_EQ(tuning.us, least);
  const StepFacts facts = session.step_facts()[0];
  const auto taken = std::count_if(facts.candidates.begin(), facts.candidates.end(),
                                   [](const auto& c) { return c.refusal.empty(); });
  EXPECT_EQ(static_cast<size_t>(taken), tuning.measured.size());
  EXPECT_EQ(facts.measured_us, least);
  EXPECT_TRUE(plain.tunings().empty());
}

}  // namespace
}  // namespace redfuser
