// What masks hide: the condition, and the certificate that leaves hidden elements out.
#include <gtest/gtest.h>

#include <functional>

#include "cascade/certify/certificate.h"
#include "cascade/certify/simulate.h"
#include "cascade/visibility/hidden_elements.h"
#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::cascade {
namespace {

constexpr int64_t kLength = 7;

struct Case {
  const char *name, *mask;  // from x to m, over positions i and j
  std::function<bool(int64_t, int64_t)> visible;
  const char* text;
};

const Case kCases[] = {
    {"causal", "c = LessOrEqual(j, i) m = Where(c, x, none)",
     [](int64_t i, int64_t j) { return j <= i; }, "j <= i0"},
    {"window", "d = Sub(i, j) a = Abs(d) c = LessOrEqual(a, two) m = Where(c, x, none)",
     [](int64_t i, int64_t j) { return std::abs(i - j) <= 2; }, nullptr},
    {"added", "c = LessOrEqual(j, i) b = Where(c, fz, none) m = Add(x, b)",
     [](int64_t i, int64_t j) { return j <= i; }, "j <= i0"},
    {"two_masks",
     "c = LessOrEqual(j, i) e = Where(c, x, none) d = Sub(i, j) f = LessOrEqual(d, two) "
     "m = Where(f, e, none)",
     [](int64_t i, int64_t j) { return j <= i && i - j <= 2; }, nullptr},
    {"finite_fill", "c = LessOrEqual(j, i) m = Where(c, x, low)",
     [](int64_t, int64_t) { return true; }, ""},
    {"nothing", "m = Neg(x)", [](int64_t, int64_t) { return true; }, ""},
};

std::string graph(const char* mask) {
  return std::string("<ir_version: 9, opset_import: [\"\" : 20]> g (float[n, n] x) => (y) { ") +
         "zero = Constant<value = int64 {0}>() step = Constant<value = int64 {1}>() "
         "one = Constant<value = int64[1] {1}>() two = Constant<value = int64 {2}>() "
         "none = Constant<value = float {-inf}>() low = Constant<value = float {-30000}>() "
         "fz = Constant<value = float {0}>() sh = Shape<start = 0, end = 1>(x) "
         "size = Squeeze(sh) j = Range(zero, size, step) i = Unsqueeze(j, one) " +
         mask + " y = ReduceLogSumExp<keepdims = 0>(m, one) }";
}

class Hidden : public testing::TestWithParam<Case> {
 protected:
  Hidden() : program_(compile(Model::parse(graph(GetParam().mask)))) {
    for (const fuse::Step& step : program_.handle()->plan.steps) {
      const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind);
      if (cascade != nullptr) form_ = &cascade->streaming;
    }
  }
  // Of element l in row i.
  static ir::Environment at(int64_t i, ir::Expr stream, int64_t l) {
    return [=](ir::Expr leaf) -> double {
      if (leaf->op == ir::ExprOp::Symbol) return kLength;
      if (leaf->op == ir::ExprOp::Axis) return static_cast<double>(leaf == stream ? l : i);
      int64_t hash = 3;
      for (ir::Expr index : leaf->args) hash = hash * 31 + index->integer;
      return static_cast<double>(hash % 17) / 4;
    };
  }

  const Program program_;
  const Streaming* form_ = nullptr;
};

TEST_P(Hidden, TheConditionIsThatOfTheMask) {
  ASSERT_NE(form_, nullptr);
  ir::Graph own = clone(program_.handle()->graph());
  ir::Expr hidden = hidden_elements(*own.pool, *form_);
  for (int64_t i = 0; i < kLength; ++i) {
    for (int64_t j = 0; j < kLength; ++j) {
      const bool is_hidden = evaluate(hidden, at(i, form_->cascade.stream, j)) != 0;
      EXPECT_EQ(is_hidden, !GetParam().visible(i, j)) << i << " " << j;
    }
  }
}

TEST_P(Hidden, TheReportSaysSo) {
  const FusedReport& report = program_.handle()->plan.report.fused.at(0);
  const bool masks = GetParam().text == nullptr || *GetParam().text != 0;
  EXPECT_EQ(report.hidden > 0, masks);
  EXPECT_EQ(report.visible.empty(), !masks);
  if (GetParam().text != nullptr) EXPECT_EQ(report.visible, GetParam().text);
}

// The check can fail: a condition that hides what is visible gives other results.
TEST_P(Hidden, AWrongConditionChangesResults) {
  ir::Graph own = clone(program_.handle()->graph());
  ir::ExprPool& pool = *own.pool;
  ir::Expr hidden = hidden_elements(pool, *form_);
  ir::Expr wrong = pool.make(ir::ExprOp::LessEqual, {form_->cascade.stream, pool.integer(2)});
  Row row;
  row.length = kLength;
  row.values = at(3, nullptr, 0);
  StreamingSimulator simulator(*form_);
  const std::vector<int64_t> bounds = {0, 4, kLength};
  const double whole = simulator.run(row, bounds, 2).outputs.at(0).at(0);
  EXPECT_NEAR(simulator.run_visible(row, bounds, 2, hidden).outputs[0][0], whole, 1e-9);
  EXPECT_GT(std::abs(simulator.run_visible(row, bounds, 2, wrong).outputs[0][0] - whole), 1e-3);
  EXPECT_EQ(simulator.left_out(), 3);
}

INSTANTIATE_TEST_SUITE_P(Masks, Hidden, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::cascade
