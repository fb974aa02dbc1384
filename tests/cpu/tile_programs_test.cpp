// Which instructions the tile programs of steps have.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpu/pointwise/chain_instructions.h"
#include "cpu/steps/cascade/cascade_plan.h"
#include "cpu/steps/map/map_plan.h"
#include "cpu/tile/tile_memory.h"
#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

int count_in(const cpu::Block& block, const std::function<bool(const cpu::Instruction&)>& wanted) {
  int count = 0;
  for (const auto& instruction : block) {
    count += wanted(*instruction);
    if (instruction->body() != nullptr) count += count_in(*instruction->body(), wanted);
  }
  return count;
}

// The step that computes a graph that is one.
class OneStep {
 public:
  explicit OneStep(const std::string& graph)
      : program_(compile(Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> g " + graph))) {}

  cpu::StepForm form() const {
    const runtime::CompiledProgram& compiled = *program_.handle();
    EXPECT_EQ(compiled.plan.steps.size(), 1u);
    return {compiled.graph(), compiled.plan.steps.front().kind, symbols_};
  }

 private:
  Program program_;
  std::vector<int64_t> symbols_;
};

TEST(CpuTilePrograms, ATermThatAnOutputRepeatsIsComputedOnce) {
  for (const char* graph : {"(float[9, 70] x) => (y) { y = Softmax(x) }",
                            "(float[9, 70] x) => (y) { e = Softmax(x) y = Mul(e, x) }"}) {
    const OneStep step(graph);
    const cpu::StepForm form = step.form();
    const auto& cascade = std::get<fuse::CascadeStep>(form.kind);
    const cpu::CascadePlan plan(form, cascade.streaming, cpu::CascadeRows::Whole);
    const auto exponentials = [](const auto& i) {
      const auto* chain = dynamic_cast<const cpu::FoldedChain*>(&i);
      return chain != nullptr && chain->links.back().op == cpu::ChainOp::Exp;
    };
    EXPECT_EQ(count_in(plan.program.block, exponentials), 1) << graph;
    const auto functions = [](const auto& i) {
      const auto* chain = dynamic_cast<const cpu::PointwiseChain*>(&i);
      const auto* binary = dynamic_cast<const cpu::Binary*>(&i);
      return (binary != nullptr && binary->op == cpu::BinaryOp::ExpSub) ||
             (chain != nullptr &&
              std::any_of(chain->links.begin(), chain->links.end(),
                          [](const auto& link) { return cpu::is_function(link.op); }));
    };
    EXPECT_EQ(count_in(plan.program.block, functions), 0) << graph;
  }
}

// The exponentials, which the division reads last, lie where it writes.
TEST(CpuTilePrograms, WhatAnOutputIsComputedOfLiesInItsMemory) {
  const OneStep step("(float[9, 70] x) => (y) { y = Softmax(x) }");
  const cpu::StepForm form = step.form();
  const auto& cascade = std::get<fuse::CascadeStep>(form.kind);
  const cpu::CascadePlan plan(form, cascade.streaming, cpu::CascadeRows::Whole);
  const auto bound = [](const auto& i) {
    return dynamic_cast<const cpu::BindOutput*>(&i) != nullptr;
  };
  EXPECT_EQ(count_in(plan.program.block, bound), 2);
}

// The rows of a section do not lie one after the other in the output.
TEST(CpuTilePrograms, RowsAreWrittenAsVectors) {
  const OneStep step("(float[9, 40] a, float[9, 30] b) => (y) { y = Concat<axis = 1>(a, b) }");
  const cpu::StepForm form = step.form();
  const auto sections = cpu::map_sections(std::get<fuse::MapStep>(form.kind), form.symbols);
  ASSERT_EQ(sections.size(), 2u);
  for (const cpu::MapSection& section : sections) {
    const cpu::MapPlan plan(form, &section);
    EXPECT_EQ(count_in(plan.program.block,
                       [](const auto& i) {
                         const auto* store = dynamic_cast<const cpu::Store*>(&i);
                         return store != nullptr && (store->access.column_stride != 1 ||
                                                     store->access.column_offsets >= 0);
                       }),
              0);
  }
}

// Around what is padded no element is read, and within no condition is asked.
TEST(CpuTilePrograms, BoxesDecideConditionsAlongSeveralAxes) {
  const OneStep step(
      "(float[2, 9, 11] x) => (y) { p = Constant<value_ints = [0, 2, 3, 0, 1, -2]>() "
      "y = Pad(x, p) }");
  const cpu::StepForm form = step.form();
  const auto& map = std::get<fuse::MapStep>(form.kind);
  const auto boxes = cpu::map_sections(map, form.symbols, true);
  EXPECT_EQ(boxes.size(), 4u);  // above, below, before and within
  int64_t elements = 0;
  for (const cpu::MapSection& box : boxes) {
    std::vector<int64_t> sizes{2, 12, 12};
    for (const cpu::AxisSection& part : box) sizes[part.axis] = part.end - part.begin;
    elements += element_count(sizes);
    const cpu::MapPlan plan(form, &box);
    EXPECT_EQ(
        count_in(plan.program.block,
                 [](const auto& i) { return dynamic_cast<const cpu::Select*>(&i) != nullptr; }),
        0);
  }
  EXPECT_EQ(elements, 2 * 12 * 12);
  // Parts of other sizes: no row of either begins a section of its own.
  const OneStep flat(
      "(float[2, 3, 8] a, float[2, 5, 4] b) => (y) <int64[2] s = {2, -1}> { c = Reshape(a, s) "
      "d = Reshape(b, s) y = Concat<axis = 1>(c, d) }");
  const cpu::StepForm reshaped = flat.form();
  EXPECT_EQ(cpu::map_sections(std::get<fuse::MapStep>(reshaped.kind), reshaped.symbols).size(), 2u);
  // Along one axis alone sections are all that there is to divide.
  const OneStep rows("(float[9, 40] a, float[9, 30] b) => (y) { y = Concat<axis = 1>(a, b) }");
  const cpu::StepForm joined = rows.form();
  EXPECT_TRUE(
      cpu::map_sections(std::get<fuse::MapStep>(joined.kind), joined.symbols, true).empty());
}

// Within a section the elements of padding lie at a stride.
TEST(CpuTilePrograms, SectionsDecideWhereElementsAre) {
  struct Case {
    const char* mode;
    size_t sections;
  };
  for (const auto& [mode, sections] : {Case{"reflect", 3}, Case{"edge", 3}, Case{"wrap", 5}}) {
    SCOPED_TRACE(mode);
    const OneStep step(
        fmt::format("(float[1, 40] x) => (y) {{ p = Constant<value_ints = [0, 9, 0, "
                    "{}]>() y = Pad<mode = \"{}\">(x, p) }}",
                    *mode == 'w' ? 95 : 30, mode));
    const cpu::StepForm form = step.form();
    const auto found = cpu::map_sections(std::get<fuse::MapStep>(form.kind), form.symbols);
    EXPECT_EQ(found.size(), sections);
    for (const cpu::MapSection& section : found) {
      const cpu::MapPlan plan(form, &section);
      EXPECT_EQ(count_in(plan.program.block,
                         [](const auto& i) {
                           const auto* load = dynamic_cast<const cpu::LoadCopy*>(&i);
                           return dynamic_cast<const cpu::ColumnIndex*>(&i) != nullptr ||
                                  (load != nullptr && load->access.whole >= 0);
                         }),
                0);
    }
  }
}

}  // namespace
}  // namespace redfuser
