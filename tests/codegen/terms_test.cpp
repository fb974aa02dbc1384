// Parts of the scores that a tile's elements share: which are found, and that they are the same
// values by place.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/attention/hopper/select.h"
#include "codegen/attention/recognize.h"
#include "ir/evaluate.h"
#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

constexpr int64_t kQueries = 80, kKeys = 112;

struct Case {
  const char* name;
  std::string scores;  // from scores s to m
  int keys, diagonals;
  bool votes = false;  // the keys of a tile may leave it whole
  int strips = 0;
};

std::string constant(const std::string& name, const std::string& value) {
  return name + " = Constant<value = " + value + ">() ";
}

std::string graph(const std::string& scores) {
  return "g (float16[2,3,80,32] q, float16[2,3,112,32] k, float16[2,3,112,32] v, "
         "bool[2,1,1,112] given, int64[2,112] count, float16[1,3,1,112] bias, "
         "float16[1,3,80,112] dense, float16[1,3,112,80] turned, float16[191,3] table, "
         "int64[2,1,80,1] qs, int64[2,1,1,112] "
         "ks) "
         "=> (float16[2,3,80,32] y) {" +
         constant("zero", "int64 {0}") + constant("step", "int64 {1}") +
         constant("nq", "int64 {80}") + constant("nk", "int64 {112}") +
         constant("last", "int64 {79}") + constant("one", "int64[1] {1}") +
         constant("axes", "int64[2] {1, 2}") + constant("low", "float {-3.4028234663852886e38}") +
         constant("onef", "float {1}") + constant("none", "float {-inf}") +
         constant("slope", "float {0.25}") +
         "qr = Range(zero, nq, step) i = Unsqueeze(qr, one) j = Range(zero, nk, step) "
         "d = Sub(j, i) at = Add(d, last) "
         "kt = Transpose<perm = [0,1,3,2]>(k) a = MatMul(q, kt) s = Cast<to = 1>(a) " +
         scores + " p = Softmax<axis = -1>(m) ph = CastLike(p, v) y = MatMul(ph, v) }";
}

const char* const kTable =
    "g0 = Gather<axis = 0>(table, at) g1 = Transpose<perm = [2, 0, 1]>(g0) tf = Cast<to = 1>(g1) ";
const char* const kCausal = "c = GreaterOrEqual(i, j) ";

std::vector<Case> cases() {
  const std::string table = kTable, causal = kCausal;
  return {
      {"none", "m = Identity(s)", 0, 0},
      {"causal", causal + "m = Where(c, s, none)", 0, 0},
      {"slopes", "df = Cast<to = 1>(d) b = Mul(df, slope) m = Add(s, b)", 0, 0},
      {"padding", "m = Where(given, s, none)", 1, 0, true},
      {"added_padding",
       "u = Unsqueeze(count, axes) f = Cast<to = 1>(u) r = Sub(onef, f) b = Mul(r, low) "
       "m = Add(s, b)",
       1, 0},
      {"bias_and_causal", causal + "bf = Cast<to = 1>(bias) b = Add(s, bf) m = Where(c, b, none)",
       1, 0},
      {"padding_and_causal", causal + "e = And(c, given) m = Where(e, s, none)", 1, 0, true},
      {"segments", "c = Equal(qs, ks) m = Where(c, s, none)", 1, 0},
      {"table", table + "m = Add(s, tf)", 0, 1},
      {"table_and_padding", table + "b = Add(s, tf) m = Where(given, b, none)", 1, 1, true},
      {"function",
       "ab = Abs(d) df = Cast<to = 1>(ab) lg = Log(df) sq = Sqrt(lg) f = Floor(sq) m = Add(s, f)",
       0, 1},
      {"dense", "bf = Cast<to = 1>(dense) m = Add(s, bf)", 0, 0, false, 1},
      {"dense_and_padding", "bf = Cast<to = 1>(dense) b = Add(s, bf) m = Where(given, b, none)", 1,
       0, true, 1},
      // Keys are not adjacent.
      {"across", "x = Transpose<perm = [0, 1, 3, 2]>(turned) bf = Cast<to = 1>(x) m = Add(s, bf)",
       0, 0},
  };
}

class TermsTest : public ::testing::TestWithParam<Case> {};

// Reads are numbers of their value and offset.
double at(ir::Expr e, const std::map<ir::Expr, int64_t>& axes) {
  if (e->op == ir::ExprOp::Axis) return static_cast<double>(axes.at(e));
  EXPECT_EQ(e->op, ir::ExprOp::Read);
  const double offset = evaluate(e->args[0], [&](ir::Expr leaf) { return at(leaf, axes); });
  return static_cast<double>((static_cast<int64_t>(offset) * 7 + e->integer) % 5);
}

TEST_P(TermsTest, AreFoundByDependence) {
  const Case& c = GetParam();
  const TextModel model(graph(c.scores));
  CompileOptions options;
  options.certify = false;
  const Program program = compile(Model::load(model.path()), options);
  const runtime::CompiledProgram& compiled = *program.handle();
  codegen::Target target;
  int seen = 0;
  for (const fuse::Step& step : compiled.plan.steps) {
    const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind);
    if (cascade == nullptr) continue;
    codegen::StepBuilder builder(compiled.graph(), step, target);
    const auto form = recognize_attention(builder, *cascade);
    if (!form) continue;
    ++seen;
    const codegen::HopperScores scores = hopper_scores(builder.pool(), *form);
    int keys = 0, diagonals = 0;
    for (const codegen::BiasTile& term : scores.terms) {
      (term.diagonal ? diagonals : keys)++;
      std::map<ir::Expr, int64_t> axes;
      for (ir::Expr other : form->others) axes[other] = 1;
      for (int64_t row = 0; row < kQueries; row += 7) {
        for (int64_t key = 0; key < kKeys; ++key) {
          axes[form->row] = row;
          axes[form->rows.cascade.stream] = key;
          const double expected = evaluate(term.expr, [&](ir::Expr e) { return at(e, axes); });
          std::map<ir::Expr, int64_t> places = axes;
          places.erase(form->row);
          places.erase(form->rows.cascade.stream);
          places[term.place] = term.diagonal ? key - row + kQueries - 1 : key;
          const double found = evaluate(term.value, [&](ir::Expr e) { return at(e, places); });
          ASSERT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)))
              << row << " " << key << " " << to_string(builder.pool(), term.expr);
        }
      }
    }
    for (const codegen::ScoreStrip& strip : scores.strips) {
      std::map<ir::Expr, int64_t> axes;
      for (ir::Expr other : form->others) axes[other] = 1;
      axes[form->row] = 11;
      axes[form->rows.cascade.stream] = 23;
      const auto axis = [&](ir::Expr e) { return at(e, axes); };
      EXPECT_EQ(evaluate(strip.read->args[0], axis), evaluate(strip.offset, axis) + 23);
    }
    EXPECT_EQ(static_cast<int>(scores.strips.size()), c.strips);
    EXPECT_EQ(keys, c.keys);
    EXPECT_EQ(diagonals, c.diagonals);
    EXPECT_EQ(scores.by_key != nullptr, c.votes);
  }
  EXPECT_EQ(seen, 1);
}

INSTANTIATE_TEST_SUITE_P(Scores, TermsTest, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen_tests
