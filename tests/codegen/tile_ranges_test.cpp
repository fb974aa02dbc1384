// Masks of attention, from ONNX text: what is hidden, and which tiles a kernel visits.
#include "cascade/visibility/tile_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "codegen/attention/mask_condition.h"
#include "codegen/attention/recognize.h"
#include "ir/evaluate.h"
#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

constexpr int64_t kQueries = 40, kKeys = 56, kLength = 23;

struct Case {
  const char* name;
  std::string mask;  // from scores s to masked scores m
  std::function<bool(int64_t, int64_t)> visible;
  bool exact = true;    // the ranges and the predicates are as tight as can be
  bool settled = true;  // provable
  bool masked = true;
  bool predicates = true;  // exact, too
};

std::string constant(const std::string& name, const std::string& value) {
  return name + " = Constant<value = " + value + ">() ";
}

std::string positions() {
  return constant("zero", "int64 {0}") + constant("step", "int64 {1}") +
         constant("one", "int64[1] {1}") + constant("off", "int64 {16}") +
         constant("w", "int64 {9}") + constant("blk", "int64 {8}") + constant("two", "int64 {2}") +
         constant("three", "int64 {3}") + constant("four", "int64 {4}") +
         constant("fifty", "int64 {50}") + constant("none", "float {-inf}") +
         constant("low", "float {-3.4028234663852886e38}") + constant("mild", "float {-30000}") +
         constant("fz", "float {0}") + constant("lf", "float {-65504}") +
         "zh = Cast<to = 10>(fz) lh = Cast<to = 10>(lf) mh = Cast<to = 10>(mild) "
         "s2 = Shape<start = 2, end = 3>(q) nq = Squeeze(s2) t2 = Shape<start = 2, end = 3>(k) "
         "nk = Squeeze(t2) qr = Range(zero, nq, step) i = Unsqueeze(qr, one) "
         "j = Range(zero, nk, step) ";
}

std::string graph(const std::string& type, const std::string& mask) {
  return "g (" + type + "[2,3,m,32] q, " + type + "[2,3,n,32] k, " + type +
         "[2,3,n,32] v, int64[2] len, int64[2,1,m,1] qs, int64[2,1,1,n] ks, "
         "bool[2,1,1,n] given) => (" +
         type + "[2,3,m,32] y) {" + positions() +
         "kt = Transpose<perm = [0,1,3,2]>(k) a = MatMul(q, kt) s = Cast<to = 1>(a) " + mask +
         " p = Softmax<axis = -1>(m) ph = CastLike(p, v) y = MatMul(ph, v) }";
}

std::vector<Case> cases() {
  const std::string where = "m = Where(c, s, none)", gap = "d = Sub(i, j) a1 = Abs(d) ";
  const std::string near = gap + "cn = LessOrEqual(a1, w) ";
  return {
      {"near", gap + "c = LessOrEqual(a1, w) " + where,
       [](int64_t i, int64_t j) { return std::abs(i - j) <= 9; }},
      {"near_in_32_bits",
       gap + "a32 = Cast<to = 6>(a1) w32 = Cast<to = 6>(w) c = Greater(w32, a32) " + where,
       [](int64_t i, int64_t j) { return std::abs(i - j) < 9; }},
      {"far", gap + "n = LessOrEqual(a1, w) c = Not(n) " + where,
       [](int64_t i, int64_t j) { return std::abs(i - j) > 9; }},
      {"near_by_squares", "d = Sub(i, j) d2 = Mul(d, d) c = Less(d2, fifty) " + where,
       [](int64_t i, int64_t j) { return (i - j) * (i - j) < 50; }},
      {"far_by_squares",
       "o = Add(i, three) d = Sub(o, j) d2 = Mul(d, d) c = GreaterOrEqual(d2, fifty) " + where,
       [](int64_t i, int64_t j) { return (i + 3 - j) * (i + 3 - j) >= 50; }},
      {"near_by_maximum",
       "d = Sub(i, j) e = Sub(j, i) b = Max(d, e) c = LessOrEqual(b, w) " + where,
       [](int64_t i, int64_t j) { return std::abs(i - j) <= 9; }},
      {"near_either_side",
       "d = Sub(i, j) h = Less(d, zero) t = Neg(d) b = Where(h, t, d) c = LessOrEqual(b, w) " +
           where,
       [](int64_t i, int64_t j) { return std::abs(i - j) <= 9; }, true, true, true, false},
      {"near_blocks",
       "bi = Div(i, blk) bj = Div(j, blk) d = Sub(bi, bj) a1 = Abs(d) c = LessOrEqual(a1, step) " +
           where,
       [](int64_t i, int64_t j) { return std::abs(i / 8 - j / 8) <= 1; }},
      {"other_blocks", "bi = Div(i, blk) bj = Div(j, blk) n = Equal(bi, bj) c = Not(n) " + where,
       [](int64_t i, int64_t j) { return i / 8 != j / 8; }},
      {"prefix_or_causal", "e = Less(j, off) o = GreaterOrEqual(i, j) c = Or(e, o) " + where,
       [](int64_t i, int64_t j) { return j < 16 || j <= i; }},
      {"prefix_or_near", near + "e = Less(j, four) c = Or(e, cn) " + where,
       [](int64_t i, int64_t j) { return j < 4 || std::abs(i - j) <= 9; }, true, true, true, false},
      {"global_and_near",
       near + "e = Less(j, four) r = Less(i, four) u = Or(e, r) c = Or(u, cn) " + where,
       [](int64_t i, int64_t j) { return j < 4 || i < 4 || std::abs(i - j) <= 9; }, true, true,
       true, false},
      {"near_and_causal_or_prefix",
       near + "o = GreaterOrEqual(i, j) both = And(cn, o) e = Less(j, four) c = Or(both, e) " +
           where,
       [](int64_t i, int64_t j) { return j < 4 || (j <= i && i - j <= 9); }, true, true, true,
       false},
      {"dilated", near + "e = Mod(a1, three) z = Equal(e, zero) c = And(cn, z) " + where,
       [](int64_t i, int64_t j) { return std::abs(i - j) <= 9 && std::abs(i - j) % 3 == 0; },
       false},
      {"five_bands",
       gap + "b1 = Equal(d, zero) b2 = Equal(a1, w) c1 = Or(b1, b2) e = Sub(a1, off) " +
           "b3 = Equal(e, zero) c = Or(c1, b3) " + where,
       [](int64_t i, int64_t j) {
         const int64_t d = std::abs(i - j);
         return d == 0 || d == 9 || d == 16;
       },
       false},
      {"none", "m = Identity(s)", [](int64_t, int64_t) { return true; }, true, true, false},
      {"causal", "c = GreaterOrEqual(i, j) " + where, [](int64_t i, int64_t j) { return j <= i; }},
      {"causal_to_the_end", "o = Add(i, off) c = LessOrEqual(j, o) " + where,
       [](int64_t i, int64_t j) { return j <= i + 16; }},
      {"window",
       "d = Sub(i, j) c0 = GreaterOrEqual(d, zero) c1 = Less(d, w) c = And(c0, c1) " + where,
       [](int64_t i, int64_t j) { return j <= i && i - j < 9; }},
      {"outside_a_window",
       "d = Sub(i, j) c0 = GreaterOrEqual(d, zero) c1 = Less(d, w) n = And(c0, c1) c = Not(n) " +
           where,
       [](int64_t i, int64_t j) { return j > i || i - j >= 9; }},
      {"nested",
       "c = GreaterOrEqual(i, j) n = Where(c, s, none) d = Sub(i, j) e = Less(d, w) "
       "m = Where(e, n, none)",
       [](int64_t i, int64_t j) { return j <= i && i - j < 9; }},
      {"strides", "a2 = Mul(i, two) a3 = Mul(j, three) c = LessOrEqual(a3, a2) " + where,
       [](int64_t i, int64_t j) { return 3 * j <= 2 * i; }},
      {"blocks", "bi = Div(i, blk) bj = Div(j, blk) c = Equal(bi, bj) " + where,
       [](int64_t i, int64_t j) { return i / 8 == j / 8; }},
      {"blocks_and_before", "bi = Div(i, blk) bj = Div(j, blk) c = LessOrEqual(bj, bi) " + where,
       [](int64_t i, int64_t j) { return j / 8 <= i / 8; }},
      {"length",
       "s3 = Constant<value = int64[4] {2,1,1,1}>() l4 = Reshape(len, s3) c = Less(j, l4) " + where,
       [](int64_t, int64_t j) { return j < kLength; }},
      {"segments", "o = GreaterOrEqual(i, j) e = Equal(qs, ks) c = And(o, e) " + where,
       [](int64_t i, int64_t j) { return j <= i && i / 16 == j / 16; }, false},
      {"given", "c = Identity(given) " + where, [](int64_t, int64_t j) { return j % 5 != 1; },
       false},
      {"added_infinity", "c = GreaterOrEqual(i, j) b = Where(c, fz, none) m = Add(s, b)",
       [](int64_t i, int64_t j) { return j <= i; }},
      {"added_lowest", "c = GreaterOrEqual(i, j) b = Where(c, fz, low) m = Add(s, b)",
       [](int64_t i, int64_t j) { return j <= i; }},
      {"added_twice",
       "c = GreaterOrEqual(i, j) b = Where(c, fz, low) t = Cast<to=9>(b) "
       "m = Where(t, low, s)",
       [](int64_t i, int64_t j) { return j <= i; }},
      {"lowest_half", "c = GreaterOrEqual(i, j) m = Where(c, a, lh)",
       [](int64_t i, int64_t j) { return j <= i; }},
      {"added_lowest_half", "c = GreaterOrEqual(i, j) b = Where(c, zh, lh) m = Add(a, b)",
       [](int64_t i, int64_t j) { return j <= i; }},
      {"mild_half", "c = GreaterOrEqual(i, j) b = Where(c, zh, mh) m = Add(a, b)",
       [](int64_t, int64_t) { return true; }, true, true, false},
      {"mild_fill", "c = GreaterOrEqual(i, j) m = Where(c, s, mild)",
       [](int64_t i, int64_t j) { return j <= i; }, true, false},
      // A score of that size may outweigh the fill.
      {"mild_addend", "c = GreaterOrEqual(i, j) b = Where(c, fz, mild) m = Add(s, b)",
       [](int64_t, int64_t) { return true; }, true, true, false},
      // The first rows see no key.
      {"lowest_with_hidden_rows", "d = Sub(i, off) c = LessOrEqual(j, d) m = Where(c, s, low)",
       [](int64_t i, int64_t j) { return j <= i - 16; }, true, false},
      {"capped",
       "cap = Constant<value = float {50}>() t = Tanh(s) u = Mul(t, cap) c = GreaterOrEqual(i, j) "
       "m = Where(c, u, none)",
       [](int64_t i, int64_t j) { return j <= i; }},
  };
}

struct Analysed {
  explicit Analysed(const std::string& text) : model(text) {
    CompileOptions options;
    options.certify = false;
    program.emplace(compile(Model::load(model.path()), options));
    const runtime::CompiledProgram& compiled = *program->handle();
    for (const fuse::Step& step : compiled.plan.steps) {
      const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind);
      if (cascade == nullptr) continue;
      builder.emplace(compiled.graph(), step, target);
      form = recognize_attention(*builder, *cascade);
    }
  }
  TextModel model;
  codegen::Target target;
  std::optional<Program> program;
  std::optional<codegen::StepBuilder> builder;
  std::optional<codegen::AttentionSpec> form;
};

// Axes by number; reads give lengths, segments and a dense mask.
class Point {
 public:
  explicit Point(const ir::ExprPool& pool) : pool_(pool) {}
  void set(ir::Expr axis, int64_t value) { axes_[axis] = value; }
  bool truth(ir::Expr e) const { return value(e) != 0; }
  int64_t value(ir::Expr e) const {
    return static_cast<int64_t>(evaluate(e, [&](ir::Expr leaf) { return at(leaf); }));
  }

 private:
  double at(ir::Expr e) const {
    if (e->op == ir::ExprOp::Symbol) return pool_.symbol_name(e) == "m" ? kQueries : kKeys;
    if (e->op == ir::ExprOp::Axis) {
      const auto found = axes_.find(e);
      return found == axes_.end() ? 0 : static_cast<double>(found->second);
    }
    EXPECT_EQ(e->op, ir::ExprOp::Read);
    const int64_t offset = value(e->args[0]);
    if (e->dtype == DType::Bool) return offset % kKeys % 5 != 1;
    bool row = false, key = false;
    for (auto& [axis, v] : axes_) {
      const bool along_keys = pool_.symbol_name(axis->extent()) == "n";
      (along_keys ? key : row) |= e->depends_on(axis);
    }
    if (row) return static_cast<double>(offset % kQueries / 16);
    if (key) return static_cast<double>(offset % kKeys / 16);
    return kLength;
  }
  const ir::ExprPool& pool_;
  std::map<ir::Expr, int64_t> axes_;
};

class TileRangesTest : public ::testing::TestWithParam<Case> {};

TEST_P(TileRangesTest, AgreesWithEveryElement) {
  const Case& c = GetParam();
  const Analysed analysed(graph("float16", c.mask));
  ASSERT_TRUE(analysed.form);
  const codegen::AttentionSpec& form = *analysed.form;
  ir::ExprPool& pool = analysed.builder->pool();
  const codegen::MaskCondition condition = mask_condition(pool, form);
  EXPECT_EQ(condition.visible->is_constant(), !c.masked) << to_string(pool, condition.visible);
  EXPECT_EQ(condition.settled->is_constant(), c.settled) << to_string(pool, condition.settled);
  SCOPED_TRACE(to_string(pool, condition.visible));
  const ir::Expr key = form.rows.cascade.stream;
  const cascade::TileRanges ranges = cascade::tile_ranges(pool, condition.visible, {form.row}, key);
  for (const auto& [rows, keys] : {std::pair<int64_t, int64_t>{16, 8}, {7, 5}, {40, 56}, {1, 1}}) {
    for (int64_t row = 0; row < kQueries; row += rows) {
      const int64_t last_row = std::min(row + rows, kQueries) - 1;
      Point point(pool);
      point.set(ranges.rows[0].first, row);
      point.set(ranges.rows[0].last, last_row);
      auto sees = [&](int64_t i, int64_t j) {
        Point element(pool);
        element.set(form.row, i);
        element.set(key, j);
        EXPECT_EQ(element.truth(condition.visible), c.visible(i, j)) << i << " " << j;
        return c.visible(i, j);
      };
      const auto visited = [&](int64_t from, int64_t last) {
        return std::any_of(ranges.visible.begin(), ranges.visible.end(), [&](auto& range) {
          const int64_t begin = point.value(range.begin), end = point.value(range.end);
          EXPECT_GE(begin, 0);
          EXPECT_LE(end, kKeys);
          return std::max(begin, from) < std::min(end, last + 1);
        });
      };
      for (int64_t from = 0; from < kKeys; from += keys) {
        const int64_t last = std::min(from + keys, kKeys) - 1;
        bool any = false, all = true;
        for (int64_t i = row; i <= last_row; ++i) {
          for (int64_t j = from; j <= last; ++j) {
            const bool seen = sees(i, j);
            any |= seen;
            all &= seen;
          }
        }
        point.set(ranges.key.first, from);
        point.set(ranges.key.last, last);
        EXPECT_TRUE(!any || visited(from, last)) << row << " " << from;
        EXPECT_TRUE(!any || point.truth(ranges.may)) << row << " " << from;
        EXPECT_TRUE(all || !point.truth(ranges.full)) << row << " " << from;
        if (!c.exact) continue;
        EXPECT_EQ(visited(from, last), any) << row << " " << from;
        if (!c.predicates) continue;
        EXPECT_EQ(point.truth(ranges.may), any) << row << " " << from;
        EXPECT_EQ(point.truth(ranges.full), all) << row << " " << from;
      }
    }
  }
}

// Visible elements need none of the mask's code.
TEST_P(TileRangesTest, LeavesNoMaskWhereVisible) {
  const Case& c = GetParam();
  if (!c.masked) GTEST_SKIP() << "nothing is masked";
  const Analysed analysed(graph("float16", c.mask));
  ASSERT_TRUE(analysed.form);
  ir::ExprPool& pool = analysed.builder->pool();
  const codegen::MaskCondition condition = mask_condition(pool, *analysed.form);
  ir::Expr lift =
      codegen::where_visible(pool, condition.visible, analysed.form->rows.accumulators[0].lift);
  visit(lift, [&](ir::Expr e) { EXPECT_NE(e->op, ir::ExprOp::Select) << to_string(pool, lift); });
}

// Where queries and keys are the same positions, |i - j| <= w hides no row, and finite fills may
// stand for -inf.
TEST(TileRanges, EveryRowSeesItself) {
  std::string text =
      graph("float16", "d = Sub(i, j) a1 = Abs(d) c = LessOrEqual(a1, w) m = Where(c, s, low)");
  for (size_t at = 0; (at = text.find(",n,", at)) != std::string::npos;) text[at + 1] = 'm';
  const Analysed analysed(text);
  ASSERT_TRUE(analysed.form);
  EXPECT_TRUE(mask_condition(analysed.builder->pool(), *analysed.form).skips());
}

INSTANTIATE_TEST_SUITE_P(Masks, TileRangesTest, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen_tests
