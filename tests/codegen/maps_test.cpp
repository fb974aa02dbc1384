// Independent elementwise steps as one kernel: which steps are joined, that their places in the
// plan change no result, for which sizes the kernel is taken, and that it compiles everywhere.
#include <gtest/gtest.h>

#include <random>

#include "codegen/joined/joined_steps.h"
#include "codegen/maps/maps_kernel.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

// A plan of maps from vectors to vectors, of views, and of other steps.
class PlanWriter {
 public:
  PlanWriter() {
    graph.pool = std::make_shared<ir::ExprPool>();
    size_ = graph.pool->symbol("n");
  }

  ir::ValueId input() {
    graph.inputs.push_back(value());
    return graph.inputs.back();
  }
  void output(ir::ValueId id) { graph.outputs.push_back(id); }

  ir::ValueId map(const std::vector<ir::ValueId>& reads) { return map(reads, value()); }
  // Into memory that has a value already.
  ir::ValueId map(const std::vector<ir::ValueId>& reads, ir::ValueId result) {
    ir::Expr axis = graph.pool->axis("i", size_), body = graph.pool->number(1, DType::Float32);
    for (const ir::ValueId read : reads) {
      body = graph.pool->add(body, graph.pool->read(read, DType::Float32, {axis}));
    }
    return step(fuse::MapStep{{axis}, {{result, body}}}, reads, result);
  }
  // A step that no group takes.
  ir::ValueId other(const std::vector<ir::ValueId>& reads) {
    const ir::ValueId result = value();
    return step(fuse::OpaqueStep{0}, reads, result);
  }
  ir::ValueId view(ir::ValueId source) {
    const ir::ValueId result = value();
    plan.alias_roots[result] = plan.root(source);
    return step(fuse::AliasStep{result, source}, {source}, result);
  }

  codegen::JoinedSteps joined() const { return {graph, plan, kTargets[1], {}}; }

  ir::Graph graph;
  fuse::Plan plan;

 private:
  ir::ValueId value() {
    const ir::ValueId id = graph.add_value(fmt::format("v{}", graph.values.size()), DType::Float32);
    graph.values[static_cast<size_t>(id)].shape = {size_};
    return id;
  }
  ir::ValueId step(fuse::StepKind kind, const std::vector<ir::ValueId>& reads, ir::ValueId result) {
    fuse::Step step;
    step.kind = std::move(kind);
    step.reads = reads;
    step.writes = {result};
    plan.steps.push_back(std::move(step));
    return result;
  }

  ir::Expr size_;
};

// Which steps are computed with another one, as pairs of steps.
std::vector<std::pair<size_t, size_t>> taken(const PlanWriter& writer) {
  const codegen::JoinedSteps joined = writer.joined();
  std::vector<std::pair<size_t, size_t>> result;
  for (size_t i = 0; i < writer.plan.steps.size(); ++i) {
    if (const auto leader = joined.taken_by(i)) result.emplace_back(i, *leader);
  }
  return result;
}
using Taken = std::vector<std::pair<size_t, size_t>>;

TEST(CodegenMaps, NeighboursAreJoined) {
  PlanWriter plan;
  const ir::ValueId x = plan.input();
  plan.map({x}), plan.map({x}), plan.map({x});
  EXPECT_EQ(taken(plan), (Taken{{0, 2}, {1, 2}}));
}

TEST(CodegenMaps, StepsBetweenThemStay) {
  PlanWriter plan;
  const ir::ValueId x = plan.input();
  const ir::ValueId q = plan.other({x}), a = plan.map({q});
  const ir::ValueId k = plan.other({x}), b = plan.map({k});
  plan.other({a, b});
  EXPECT_EQ(taken(plan), (Taken{{1, 3}}));
}

TEST(CodegenMaps, StepsFarApartAreNotJoined) {
  PlanWriter plan;
  const ir::ValueId x = plan.input();
  plan.map({x});
  for (int i = 0; i < 8; ++i) plan.other({x});
  plan.map({x});
  EXPECT_EQ(taken(plan), Taken{});
}

TEST(CodegenMaps, AReaderOfAnotherOnesResultIsNotJoined) {
  PlanWriter plan;
  plan.map({plan.map({plan.input()})});
  EXPECT_EQ(taken(plan), Taken{});
}

TEST(CodegenMaps, AReaderOfAViewOfAnotherOnesResultIsNotJoined) {
  PlanWriter plan;
  plan.map({plan.view(plan.map({plan.input()}))});
  EXPECT_EQ(taken(plan), Taken{});
}

TEST(CodegenMaps, AWriterOfWhatAnotherOneReadsIsNotJoined) {
  PlanWriter plan;
  const ir::ValueId x = plan.input(), y = plan.other({x});
  plan.map({plan.view(y)});
  plan.map({x}, y);
  EXPECT_EQ(taken(plan), Taken{});
}

TEST(CodegenMaps, WritersOfOneMemoryAreNotJoined) {
  PlanWriter plan;
  const ir::ValueId x = plan.input(), y = plan.map({x});
  plan.map({x}, y);
  EXPECT_EQ(taken(plan), Taken{});
}

TEST(CodegenMaps, AReaderInBetweenIsNotOvertaken) {
  PlanWriter plan;
  const ir::ValueId x = plan.input();
  plan.other({plan.map({x})});
  plan.map({x});
  EXPECT_EQ(taken(plan), Taken{});
}

// Its reader waits for a step that waits for the map.
TEST(CodegenMaps, AReaderThroughOtherStepsIsNotJoined) {
  PlanWriter plan;
  const ir::ValueId x = plan.input();
  plan.map({plan.other({plan.view(plan.map({x}))})});
  EXPECT_EQ(taken(plan), Taken{});
}

// As a state, which the second map overwrites.
TEST(CodegenMaps, AReaderOfAnInputThatAnotherOneOverwritesIsNotJoined) {
  PlanWriter plan;
  const ir::ValueId state = plan.input();
  plan.map({state});
  plan.output(plan.map({state}));
  EXPECT_EQ(taken(plan), Taken{});
}

TEST(CodegenMaps, AStateThatAStepInBetweenOverwritesIsReadBefore) {
  PlanWriter plan;
  const ir::ValueId state = plan.input(), x = plan.input();
  plan.map({state});
  plan.output(plan.other({state}));
  plan.map({x});
  EXPECT_EQ(taken(plan), Taken{});
}

TEST(CodegenMaps, StatesThatEachOverwriteTheirOwnAreJoined) {
  PlanWriter plan;
  const ir::ValueId m = plan.input(), v = plan.input(), gradient = plan.input();
  plan.output(plan.map({m, gradient}));
  plan.output(plan.map({v, gradient}));
  EXPECT_EQ(taken(plan), (Taken{{0, 1}}));
}

TEST(CodegenMaps, StepsOfTheHostAreNotJoined) {
  PlanWriter plan;
  const ir::ValueId x = plan.input();
  plan.map({x}), plan.map({x}), plan.map({x});
  const codegen::JoinedSteps joined(plan.graph, plan.plan, kTargets[1], {1});
  EXPECT_EQ(joined.done_by(2), (std::vector<size_t>{0, 2}));
  EXPECT_EQ(joined.done_by(1), std::vector<size_t>{1});
}

TEST(CodegenMaps, SeparatedStepsHaveTheirOwnCalls) {
  PlanWriter plan;
  const ir::ValueId x = plan.input();
  plan.map({x}), plan.map({x});
  codegen::JoinedSteps joined = plan.joined();
  joined.separate(1);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(joined.done_by(i), std::vector<size_t>{i});
    EXPECT_EQ(joined.generate(plan.graph, plan.plan, i, kTargets[1]).offers[0].family, "map");
  }
}

// Drawn plans, some outputs of which are in the memory of an input: with every group computed in
// its leader's place, all of its reads before its writes and the other way around, memory is as it
// is after the steps one by one.
class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {
    values_ = {plan_.input(), plan_.input(), plan_.input()};
    for (int i = 0; i < 24; ++i) add_step();
    for (size_t i = 0; i < values_.size(); ++i) {
      if (draw(3) == 0 && values_[i] > 2) plan_.output(values_[i]);
    }
  }

  void expect_equal() {
    const codegen::JoinedSteps joined = plan_.joined();
    place_outputs(joined);
    std::map<ir::ValueId, uint64_t> expected = inputs(), got = inputs(), late = inputs();
    for (size_t i = 0; i < steps().size(); ++i) {
      run({i}, expected, false);
      run(joined.done_by(i), got, false);
      run(joined.done_by(i), late, true);
      groups += joined.group_of(i) != nullptr;
    }
    EXPECT_EQ(got, expected);
    EXPECT_EQ(late, expected);
  }

  int groups = 0;
  int overwritten = 0;

 private:
  size_t draw(size_t count) { return random_() % count; }
  const std::vector<fuse::Step>& steps() const { return plan_.plan.steps; }

  void add_step() {
    std::vector<ir::ValueId> reads;
    for (size_t i = 0; i <= draw(2); ++i) reads.push_back(values_[draw(values_.size())]);
    switch (draw(6)) {
      case 0:
        values_.push_back(plan_.view(reads[0]));
        break;
      case 1:
        values_.push_back(plan_.other(reads));
        break;
      default:
        values_.push_back(plan_.map(reads));
    }
  }

  bool reads(size_t step, ir::ValueId root) const {
    const auto& values = steps()[step].reads;
    return !std::holds_alternative<fuse::AliasStep>(steps()[step].kind) &&
           std::any_of(values.begin(), values.end(),
                       [&](ir::ValueId value) { return plan_.plan.root(value) == root; });
  }

  // As a run may: nothing reads the input after the step that writes the output, or beside it.
  void place_outputs(const codegen::JoinedSteps& joined) {
    for (const ir::ValueId input : plan_.graph.inputs) {
      for (size_t i = 0; i < steps().size() && !memory_.count(input); ++i) {
        const ir::ValueId written = steps()[i].writes[0];
        const auto& outputs = plan_.graph.outputs;
        const bool output = std::any_of(outputs.begin(), outputs.end(), [&](ir::ValueId value) {
          return plan_.plan.root(value) == written;
        });
        bool read_later = false;
        for (size_t k = 0; k < steps().size(); ++k) {
          const bool later = k > i || (k < i && joined.place_of(k) >= joined.place_of(i));
          read_later |= later && reads(k, input);
        }
        if (!output || !reads(i, input) || read_later || taken_.count(written)) continue;
        memory_[input] = written;
        taken_.insert(written);
        ++overwritten;
      }
    }
  }

  ir::ValueId memory(ir::ValueId value) const {
    const ir::ValueId root = plan_.plan.root(value);
    const auto found = memory_.find(root);
    return found == memory_.end() ? root : found->second;
  }
  std::map<ir::ValueId, uint64_t> inputs() const {
    std::map<ir::ValueId, uint64_t> result;
    for (const ir::ValueId input : plan_.graph.inputs) result[memory(input)] = 1000u + input;
    return result;
  }

  // The blocks of a kernel come in any order: the last part may read before or after the others
  // have written.
  void run(const std::vector<size_t>& done, std::map<ir::ValueId, uint64_t>& contents,
           bool backwards) const {
    for (size_t i = 0; i < done.size(); ++i) {
      const size_t step = backwards ? done[done.size() - 1 - i] : done[i];
      if (std::holds_alternative<fuse::AliasStep>(steps()[step].kind)) continue;
      uint64_t result = step;
      for (const ir::ValueId read : steps()[step].reads) {
        result = result * 0x9e3779b97f4a7c15u + contents[memory(read)];
      }
      contents[memory(steps()[step].writes[0])] = result;
    }
  }

  std::mt19937 random_;
  PlanWriter plan_;
  std::vector<ir::ValueId> values_;
  std::map<ir::ValueId, ir::ValueId> memory_;  // of inputs: the outputs that overwrite them
  std::set<ir::ValueId> taken_;
};

TEST(CodegenMaps, PlacesOfDrawnPlansChangeNoResult) {
  int groups = 0, overwritten = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.expect_equal();
    groups += simulation.groups;
    overwritten += simulation.overwritten;
  }
  EXPECT_GT(groups, 200);
  EXPECT_GT(overwritten, 50);
}

// Arguments of a kernel take 4 KB.
TEST(CodegenMaps, ManyArgumentsTakeSeveralKernels) {
  PlanWriter plan;
  std::vector<ir::ValueId> inputs;
  for (int i = 0; i < 150; ++i) inputs.push_back(plan.input());
  for (int i = 0; i < 5; ++i) plan.map(inputs);
  for (int i = 0; i < 40; ++i) plan.map({inputs[0]});
  const codegen::JoinedSteps joined = plan.joined();
  size_t groups = 0;
  for (size_t i = 0; i < plan.plan.steps.size(); ++i) {
    const codegen::JoinedGroup* group = joined.group_of(i);
    if (group == nullptr) continue;
    ++groups;
    EXPECT_LE(group->steps.size(), 16u);
    const codegen::GpuStep form = joined.generate(plan.graph, plan.plan, i, kTargets[1]);
    const auto& launch = std::get<codegen::KernelLaunch>(form.calls[0]);
    EXPECT_EQ(launch.family, codegen::kMapsFamily);
    EXPECT_LE(8 * (launch.buffers.size() + launch.sizes.size()), 4096u);
  }
  EXPECT_GE(groups, 4u);
}

// A map of few elements that needs many registers, beside a large one.
struct CrowdedPlan {
  CrowdedPlan() {
    const ir::ValueId x = plan.input();
    plan.map({x});
    std::vector<ir::ValueId> many;
    for (int i = 0; i < 60; ++i) many.push_back(plan.input());
    plan.map(many);
  }
  PlanWriter plan;
};

// The kernel is taken where its launch is what counts, and left where its registers do.
TEST(CodegenMaps, RegistersDecideForManyElements) {
  CrowdedPlan crowded;
  PlanWriter& plan = crowded.plan;
  const codegen::JoinedSteps joined = plan.joined();
  ASSERT_NE(joined.group_of(1), nullptr);
  const codegen::GpuStep form = joined.generate(plan.graph, plan.plan, 1, kTargets[1]);
  ASSERT_EQ(form.calls.size(), 3u);
  bool both[2] = {};
  for (const int64_t n : {1, 100, 5000, 1 << 20, 1 << 27}) {
    std::vector<int64_t> symbols(16, n);
    std::vector<bool> runs;
    for (const codegen::GpuCall& call : form.calls) {
      runs.push_back(evaluate_size(std::get<codegen::KernelLaunch>(call).grid[0], symbols) > 0);
    }
    const bool one = runs[0];
    EXPECT_EQ(runs, (std::vector<bool>{one, !one, !one})) << n;
    both[one] = true;
    const auto choices = joined.kernel_configs(plan.graph, plan.plan, 1, kTargets[1], symbols);
    ASSERT_EQ(choices.size(), 2u);
    EXPECT_EQ(choices[0].choice.family == codegen::kMapsFamily, one) << n;
    const auto offers =
        joined.offers_at(plan.graph, plan.plan, 1, kTargets[1], codegen::KnownSizes(symbols), form);
    EXPECT_EQ(offers[0].family == codegen::kMapsFamily, one) << n;
    EXPECT_GT(offers[0].time, 0) << n;
  }
  EXPECT_TRUE(both[0] && both[1]);
}

TEST(CodegenMaps, EachChoiceIsWholeForAllSizes) {
  CrowdedPlan crowded;
  PlanWriter& plan = crowded.plan;
  const codegen::JoinedSteps joined = plan.joined();
  const std::vector<int64_t> symbols(16, 100);
  for (const auto& candidate :
       joined.kernel_configs(plan.graph, plan.plan, 1, kTargets[1], symbols)) {
    const codegen::GpuStep form =
        joined.generate(plan.graph, plan.plan, 1, kTargets[1], candidate.choice);
    const bool one = candidate.choice.family == codegen::kMapsFamily;
    EXPECT_EQ(form.calls.size(), one ? 1u : 2u);
    for (const codegen::GpuCall& call : form.calls) {
      for (const int64_t n : {1, 1 << 27}) {
        const std::vector<int64_t> sizes(16, n);
        EXPECT_GT(evaluate_size(std::get<codegen::KernelLaunch>(call).grid[0], sizes), 0);
      }
    }
  }
}

struct Case {
  const char* name;
  const char* graph;
  std::vector<size_t> parts;  // of each kernel of maps, in the plan's order
};

const Case kCases[] = {
    {"casts",
     "g (float[m] a, int64[n,k] b, double[3,5] c) => (float16[m] x, float[n,k] y, bool[3,5] z) {"
     "  x = Cast<to = 10>(a) y = Cast<to = 1>(b) z = Cast<to = 9>(c) }",
     {3}},
    {"layouts_of_heads",
     "g (float16[b,s,192] x) => (float16[b,4,s,16] q, float16[b,4,16,s] k, float16[b,s,64] v) {"
     "  l, m, r = Split<axis = 2, num_outputs = 3>(x) h = Constant<value = int64[4] {0, 0, 4, "
     "16}>()"
     "  e = Reshape(l, h) f = Reshape(m, h) q = Transpose<perm = [0, 2, 1, 3]>(e)"
     "  k = Transpose<perm = [0, 2, 3, 1]>(f) v = Relu(r) }",
     {3}},
    {"appends",
     "g (float[b,s,8] x, float[b,p,8] k, float[b,q,4] v, float[b,s,4] z)"
     " => (float[b,t,8] nk, float[b,u,4] nv) {"
     "  nk = Concat<axis = 1>(k, x) e = Exp(z) nv = Concat<axis = 1>(v, e) }",
     {2}},
    {"codes_and_bytes",
     "g (float[m,16] a, uint8[n] b, bool[k] c) => (float8e4m3fn[m,16] x, uint8[n] y, bool[k] z) {"
     "  x = Cast<to = 17>(a) o = Constant<value = uint8 {1}>() y = Add(b, o) z = Not(c) }",
     {3}},
    {"scalars_and_vectors",
     "g (float a, double[7] b, float[n] c) => (float x, double[7] y, float[n] z) {"
     "  x = Exp(a) y = Neg(b) z = Sqrt(c) }",
     {3}},
    {"chain",
     "g (float[m,n] a) => (float[m,n] x, float[n,m] y) {"
     "  x = Exp(a) t = Transpose(x) y = Neg(t) }",
     {}},
    {"two_levels",
     "g (float[m,n] a, float[k] b) => (float[m,n] x, float[n,m] y, float[k] z, float[k,k] w) {"
     "  x = Exp(a) z = Sin(b) t = Transpose(x) y = Neg(t) o = Constant<value = int64[1] {1}>()"
     "  u = Unsqueeze(z, o) w = Add(u, z) }",
     {2, 2}},
};

class CodegenMapsOf : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenMapsOf, AreKernelsOnEveryArchitecture) {
  const Program program = compile(
      Model::parse(std::string("<ir_version: 9, opset_import: [\"\" : 20]> ") + GetParam().graph));
  const runtime::CompiledProgram& compiled = *program.handle();
  for (const codegen::Target& machine : kTargets) {
    codegen::Target target = machine;
    codegen::place_values(target, compiled.plan, compiled.appends, {});
    const ir::Graph graph = clone(compiled.graph());
    const codegen::JoinedSteps joined(graph, compiled.plan, target, {});
    std::vector<size_t> parts;
    for (size_t i = 0; i < compiled.plan.steps.size(); ++i) {
      const codegen::JoinedGroup* group = joined.group_of(i);
      if (group == nullptr) continue;
      parts.push_back(group->steps.size());
      const codegen::KernelConfig choice{codegen::kMapsFamily,
                                         {{"parts", static_cast<int>(group->steps.size())}}};
      EXPECT_EQ(joined.generate(graph, compiled.plan, i, target).offers[0].choice,
                to_string(choice));
      const codegen::GpuStep form = joined.generate(graph, compiled.plan, i, target, choice);
      ASSERT_EQ(form.calls.size(), 1u);
      const auto& launch = std::get<codegen::KernelLaunch>(form.calls[0]);
      EXPECT_EQ(launch.family, codegen::kMapsFamily);
      if (Compiler* compiler = Compiler::find()) {
        const Compiler::Result result = compiler->compile(launch.source, target.architecture);
        EXPECT_TRUE(result.compiled) << result.log;
        EXPECT_EQ(result.spilled, 0) << result.log;
      }
    }
    EXPECT_EQ(parts, GetParam().parts);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenMapsOf, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace redfuser::codegen_tests
