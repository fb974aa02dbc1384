// Programs cut where sizes become known in a run.
#include "runtime/program/program_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "redfuser/redfuser.h"
#include "runtime/load/host_part.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

using Numbers = std::set<ir::ValueId>;

struct Case {
  const char* name;
  const char* graph;
  size_t parts;  // 0: the whole program
  int on_host;   // steps of the CPU; -1: all
};

const Case kCases[] = {
    {"known", "g (float[n, 8] x) => (float[n, 8] y) { y = Softmax(x) }", 0, 0},
    {"picked_rows",
     "g (bool[n] keep, float[n, 8] x, float[8, 4] w) => (float[m, 4] y) {"
     " where = NonZero(keep) zero = Constant<value = int64[1] {0}>() i = Squeeze(where, zero)"
     " rows = Gather<axis = 0>(x, i) y = MatMul(rows, w) }",
     2, 0},
    {"only_at_the_end",
     "g (float[n, 8] x) => (int64[2, m] where) { p = Softmax(x) where = NonZero(p) }", 0, 0},
    // Another value has the size of the result, and the run must check it.
    {"of_a_known_size",
     "g (float[n, 8] x, int64[2, m] z) => (int64[2, m] y) { where = NonZero(x) y = Add(where, z) }",
     2, 0},
    {"unique",
     "g (float[n] x, float[8] w) => (float[m, 8] y) {"
     " u = Unique(x) last = Constant<value = int64[1] {1}>() c = Unsqueeze(u, last)"
     " y = Mul(c, w) }",
     2, 1},
    // The host reads the sizes from a tensor, and the GPU computes the values of those sizes.
    {"range",
     "g (int64[n] counts, float[4] x) => (float[m, 4] y) {"
     " none = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>()"
     " last = ReduceMax<keepdims = 0>(counts) i = Range(none, last, one) f = Cast<to = 1>(i)"
     " column = Constant<value = int64[1] {1}>() c = Unsqueeze(f, column) y = Mul(c, x) }",
     2, 0},
    {"one_after_the_other",
     "g (float[n] x) => (float[k] y) {"
     " zero = Constant<value = int64[1] {0}>() bound = Constant<value = float {0.5}>()"
     " a = Abs(x) some = Greater(a, bound) where = NonZero(some) i = Squeeze(where, zero)"
     " picked = Gather(x, i) positive = Relu(picked) again = NonZero(positive)"
     " j = Squeeze(again, zero) both = Gather(picked, j) y = Exp(both) }",
     3, 0},
    {"beside_each_other",
     "g (bool[n] a, bool[n] b, float[n, 8] x) => (float[k, 8] y, float[l, 8] z) {"
     " zero = Constant<value = int64[1] {0}>()"
     " wa = NonZero(a) i = Squeeze(wa, zero) ra = Gather<axis = 0>(x, i) y = Softmax(ra)"
     " wb = NonZero(b) j = Squeeze(wb, zero) rb = Gather<axis = 0>(x, j) z = Softmax(rb) }",
     2, 0},
    {"a_list_stays_whole",
     "g (bool[n] keep, float[n, 8] x) => (float[k, 8] y) {"
     " where = NonZero(keep) zero = Constant<value = int64[1] {0}>() i = Squeeze(where, zero)"
     " rows = Gather<axis = 0>(x, i) list = SequenceConstruct(x) more = SequenceInsert(list, rows)"
     " y = ConcatFromSequence<axis = 0>(more) }",
     0, -1},
};

class ProgramPartsOf : public testing::TestWithParam<Case> {
 protected:
  ProgramPartsOf()
      : program_(compile(Model::parse(std::string("<ir_version: 9, opset_import: [\"\" : 17]> ") +
                                      GetParam().graph))),
        whole_(*program_.handle()),
        parts_(whole_.parts.of(whole_)) {}

  std::string name_of(ir::ValueId id) const {
    return whole_.graph().values[static_cast<size_t>(id)].name;
  }

  Program program_;
  const runtime::CompiledProgram& whole_;
  const std::vector<runtime::ProgramPart>& parts_;
};

TEST_P(ProgramPartsOf, AreAsMany) { EXPECT_EQ(parts_.size(), GetParam().parts); }

TEST_P(ProgramPartsOf, HaveEveryStepOnce) {
  std::vector<size_t> found, all;
  runtime::visit_parts(whole_,
                       [&](const runtime::CompiledProgram& part, const std::vector<size_t>& steps) {
                         EXPECT_EQ(part.plan.steps.size(), steps.size());
                         found.insert(found.end(), steps.begin(), steps.end());
                       });
  std::sort(found.begin(), found.end());
  for (size_t i = 0; i < whole_.plan.steps.size(); ++i) all.push_back(i);
  EXPECT_EQ(found, all);
}

// A part reads its own inputs and the values that it computes. Its inputs are inputs of the whole
// program or outputs of earlier parts.
TEST_P(ProgramPartsOf, GetWhatTheyRead) {
  const ir::Graph& graph = whole_.graph();
  Numbers returned(graph.inputs.begin(), graph.inputs.end());
  for (const runtime::ProgramPart& part : parts_) {
    const ir::Graph& own = part.program->graph();
    for (const ir::ValueId id : own.inputs) EXPECT_TRUE(returned.count(id)) << name_of(id);
    Numbers known(own.inputs.begin(), own.inputs.end());
    for (const fuse::Step& step : part.program->plan.steps) {
      for (const ir::ValueId id : step.reads) {
        EXPECT_TRUE(known.count(id) || graph.values[static_cast<size_t>(id)].is_constant())
            << name_of(id);
      }
      known.insert(step.writes.begin(), step.writes.end());
      for (const ir::ValueId id : step.frees) EXPECT_TRUE(known.erase(id)) << name_of(id);
    }
    for (const ir::ValueId id : own.outputs) EXPECT_TRUE(known.count(id)) << name_of(id);
    returned.insert(own.outputs.begin(), own.outputs.end());
    for (const ir::ValueId id : part.sources) EXPECT_TRUE(returned.count(id)) << name_of(id);
  }
  for (const ir::ValueId id : graph.outputs) {
    EXPECT_TRUE(parts_.empty() || returned.count(id)) << name_of(id);
  }
}

TEST_P(ProgramPartsOf, LeaveTheCpuWhatFindsSizes) {
  int on_host = 0;
  runtime::visit_parts(whole_,
                       [&](const runtime::CompiledProgram& part, const std::vector<size_t>& steps) {
                         const runtime::HostPart host(part);
                         for (size_t i = 0; i < steps.size(); ++i) on_host += host.has(i) ? 1 : 0;
                       });
  const int all = static_cast<int>(whole_.plan.steps.size());
  EXPECT_EQ(on_host, GetParam().on_host < 0 ? all : GetParam().on_host);
}

INSTANTIATE_TEST_SUITE_P(Graphs, ProgramPartsOf, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Sizes that are read one after the other are bound within the last part from the sixteenth on.
TEST(ProgramParts, AreAtMostSixteen) {
  std::string graph =
      "<ir_version: 9, opset_import: [\"\" : 17]> g (float[n] x0) => (float[k] x40) {"
      " zero = Constant<value = int64[1] {0}>()";
  for (int i = 0; i < 40; ++i) {
    graph += " r" + std::to_string(i) + " = Relu(x" + std::to_string(i) + ") w" +
             std::to_string(i) + " = NonZero(r" + std::to_string(i) + ") i" + std::to_string(i) +
             " = Squeeze(w" + std::to_string(i) + ", zero) x" + std::to_string(i + 1) +
             " = Gather(x" + std::to_string(i) + ", i" + std::to_string(i) + ")";
  }
  const Program program = compile(Model::parse(graph + " }"));
  EXPECT_EQ(program.handle()->parts.of(*program.handle()).size(), 16u);
}

}  // namespace
}  // namespace redfuser
