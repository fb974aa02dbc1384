// Contractions of any terms: which steps are computed by tiles, how their terms are divided, and
// that their kernels compile.
#include <fmt/format.h>

#include <random>

#include "codegen/contraction/contraction_kernel.h"
#include "codegen/contraction/distribute.h"
#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
  const char* family;  // of the last kernel
  int opset = 20;
};

std::string axes(int a, int b, int c) {
  return fmt::format(
      "a0 = Constant<value = int64[1] {{{}}}>() a1 = Constant<value = int64[1] {{{}}}>() "
      "a2 = Constant<value = int64[1] {{{}}}>() ",
      a, b, c);
}

std::vector<Case> cases() {
  const std::string distance =
      "(float[4, 200, 60] a, float[4, 300, 60] b) => (float[4, 200, 300] y) {" + axes(2, 1, 3) +
      "u = Unsqueeze(a, a0) v = Unsqueeze(b, a1) d = Sub(u, v) ";
  return {
      {"distances", "g " + distance + "e = Abs(d) y = ReduceSum<keepdims = 0>(e, a2) }",
       "contraction"},
      {"distances_and_a_root",
       "g " + distance + "e = Mul(d, d) s = ReduceSum<keepdims = 0>(e, a2) y = Sqrt(s) }",
       "contraction"},
      {"greatest_of_sums",
       "g (float16[512, 300] a, float16[300, 400] b) => (float16[512, 400] y) {" + axes(2, 0, 1) +
           "u = Unsqueeze(a, a0) v = Unsqueeze(b, a1) s = Add(u, v) "
           "y = ReduceMax<keepdims = 0>(s, a2) }",
       "contraction"},
      {"doubles",
       "g (double[512, 300] a, double[300, 400] b) => (double[512, 400] y) { y = MatMul(a, b) }",
       "contraction"},
      {"long_sums_of_doubles",
       "g (double[512, k] a, double[k, 400] b) => (double[512, 400] y) { y = MatMul(a, b) }",
       "contraction"},
      {"integers",
       "g (int32[1024, 1024] a, int32[1024, 1024] b) => (int32[1024, 1024] y) "
       "{ y = MatMul(a, b) }",
       "contraction"},
      {"spectra",
       "g (float[64, 1024, 2] x) => (float[64, 1024, 2] y) "
       "{ y = DFT<axis = 1, inverse = 1>(x) }",
       "contraction", 19},
      {"spectra_of_signals_of_unknown_length",
       "g (float[b, 6000, 1] x) => (float[b, 3001, 2] y) "
       "{ y = DFT<axis = 1, onesided = 1>(x) }",
       "contraction", 19},
      {"spectra_of_frames",
       "g (float16[8, 16000, 1] x, float16[400] w) => (float16[8, 98, 201, 2] y) "
       "{ s = Constant<value = int64 {160}>() y = STFT(x, s, w) }",
       "contraction"},
      {"sampled_windows",
       "g (float[2, 64, 40, 41] x, float[128, 64, 3, 3] w, float[2, 18, 38, 39] o) "
       "=> (float[2, 128, 38, 39] y) { y = DeformConv<kernel_shape = [3, 3]>(x, w, o) }",
       "contraction"},
      // Each group of filters has channels of its own: groups are products beside each other.
      {"sampled_windows_of_groups",
       "g (float[2, 64, 40, 41] x, float[128, 32, 3, 3] w, float[2, 18, 38, 39] o) "
       "=> (float[2, 128, 38, 39] y) { y = DeformConv<group = 2, kernel_shape = [3, 3]>(x, w, o) }",
       "contraction"},
      // The points are those of the row's quotient by 64.
      {"distances_of_groups",
       "g (float[256, 60] a, float[4, 300, 60] b) => (float[256, 300] y) {" + axes(1, 2, 0) +
           "zero = Constant<value = int64 {0}>() one = Constant<value = int64 {1}>() "
           "rows = Constant<value = int64 {256}>() by = Constant<value = int64 {64}>() "
           "r = Range(zero, rows, one) group = Div(r, by) v = Gather(b, group) "
           "u = Unsqueeze(a, a0) d = Sub(u, v) e = Abs(d) y = ReduceSum<keepdims = 0>(e, a1) }",
       "contraction"},
      {"weighted_sums_of_two",
       "g (float16[8, 2, 128, 3136] x, float16[8, 2, 128, 1] w) => (float16[8, 128, 3136] y) {" +
           axes(1, 1, 1) + "p = Mul(x, w) y = ReduceSum<keepdims = 0>(p, a0) }",
       "plain_product"},
      {"sums_of_windows",
       "g (float[2, 64, 400] x) => (float[2, 64, 391] y) "
       "{ y = AveragePool<kernel_shape = [10]>(x) }",
       "average_pool"},
  };
}

class CodegenContraction : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenContraction, HasTheFamilyAndCompiles) {
  const TextModel model(GetParam().graph, GetParam().opset);
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel generated = generate_model(model.path(), target);
    ASSERT_FALSE(generated.kernels.empty());
    EXPECT_EQ(generated.kernels.back().family, GetParam().family);
    if (!Compiler::find()) continue;
    expect_compiles(generated.kernels, target.architecture);
    for (const codegen::KernelLaunch& kernel : generated.kernels) {
      const auto found = Compiler::find()->compile(kernel.source, target.architecture);
      EXPECT_EQ(found.shared, kernel.static_shared) << kernel.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenContraction, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Terms over axes whose reads are numbers of their value and offset.
class ContractionForms : public ::testing::Test {
 protected:
  ir::Expr axis(const char* name, int64_t extent) { return pool.axis(name, pool.integer(extent)); }
  ir::Expr read(int64_t value, std::vector<ir::Expr> at) {
    ir::Expr offset = pool.integer(0);
    for (ir::Expr index : at) {
      offset = pool.add(pool.mul(offset, pool.integer(100)), index);
    }
    return pool.read(value, DType::Float32, {offset});
  }
  auto forms_of(std::vector<ir::Expr> axes, ir::Expr body) {
    return codegen::contraction_forms(pool, axes, {0, body, pool.integer(0)});
  }

  ir::ExprPool pool;
  ir::Expr m = axis("m", 20), n = axis("n", 30), p = axis("p", 40), k = axis("k", 50);
};

TEST_F(ContractionForms, PartsAreFreeOfTheOtherSide) {
  ir::Expr x = read(1, {p, m, k}), y = read(2, {p, k, n}), z = read(3, {n});
  ir::Expr term = pool.mul(pool.make(ir::ExprOp::Exp, {x}), pool.sub(y, z));
  const auto found = forms_of({p, m, n}, pool.reduce(ir::Reduction::Sum, k, term));
  const auto* forms = std::get_if<std::vector<codegen::ContractionForm>>(&found);
  ASSERT_NE(forms, nullptr);
  for (const codegen::ContractionForm& form : *forms) {
    EXPECT_EQ(form.batch, (std::vector<ir::Expr>{p}));
    EXPECT_EQ(form.rows.size(), 1u);
    EXPECT_EQ(form.columns.size(), 1u);
    for (ir::Expr part : form.a) EXPECT_FALSE(part->depends_on(form.columns[0]));
    for (ir::Expr part : form.b) EXPECT_FALSE(part->depends_on(form.rows[0]));
    EXPECT_EQ(form.a.size() + form.b.size(), 2u);
  }
  EXPECT_EQ(forms->size(), 2u);  // either way round
}

TEST_F(ContractionForms, RefusalsNameTheReason) {
  ir::Expr x = read(1, {m, k}), y = read(2, {k, n}), both = read(3, {m, n, k});
  const auto sum = [&](ir::Expr term) { return pool.reduce(ir::Reduction::Sum, k, term); };
  const auto refusal = [&](ir::Expr body) {
    const auto found = forms_of({m, n}, body);
    const auto* text = std::get_if<std::string>(&found);
    return text == nullptr ? "" : *text;
  };
  EXPECT_EQ(refusal(sum(pool.mul(x, y))), "");
  EXPECT_EQ(refusal(sum(pool.mul(x, both))), "its terms join no elements of rows and columns");
  EXPECT_EQ(refusal(sum(x)), "its terms join no elements of rows and columns");
  EXPECT_EQ(refusal(pool.add(sum(pool.mul(x, y)), sum(x))),
            "its results have not one reduction each");
  EXPECT_EQ(refusal(x), "its results have not one reduction each");
  EXPECT_EQ(refusal(pool.reduce(ir::Reduction::ArgMax, k, pool.mul(x, y))),
            "it looks for an element");
  ir::Expr l = pool.axis("l", m);
  ir::Expr nested = pool.reduce(ir::Reduction::Sum, l, pool.mul(read(1, {m, k, l}), y));
  EXPECT_EQ(refusal(sum(nested)), "the number of terms differs between results");
}

// A quotient of an axis makes it two: those of a row's group are free of its place in the group.
TEST_F(ContractionForms, QuotientsDivideAnAxis) {
  ir::Expr row = axis("row", 24), term = axis("term", 50);
  const auto form_of = [&](ir::Expr group) {
    ir::Expr body = pool.mul(read(1, {row, term}), read(2, {group, term, n}));
    return forms_of({row, n}, pool.reduce(ir::Reduction::Sum, term, body));
  };
  const auto divided = [&](int64_t k) { return pool.floordiv(row, pool.integer(k)); };
  const auto found = form_of(divided(4));
  const auto* forms = std::get_if<std::vector<codegen::ContractionForm>>(&found);
  ASSERT_NE(forms, nullptr);
  for (const codegen::ContractionForm& form : *forms) {
    ASSERT_EQ(form.batch.size(), 1u);
    EXPECT_EQ(form.batch[0]->extent(), pool.integer(6));
    EXPECT_EQ(form.rows.size() + form.columns.size(), 2u);
    EXPECT_FALSE(form.store.body->depends_on(row));
  }
  EXPECT_TRUE(std::holds_alternative<std::string>(form_of(divided(5))));  // 24 rows are not divided
  EXPECT_TRUE(std::holds_alternative<std::string>(form_of(row)));
  ir::Expr both = pool.add(pool.mul(divided(12), pool.integer(100)), divided(4));
  EXPECT_TRUE(std::holds_alternative<std::vector<codegen::ContractionForm>>(form_of(both)));
}

// The same values, of which those chosen depend on fewer axes.
TEST_F(ContractionForms, ChoicesOfProductsAreProductsOfChoices) {
  ir::Expr x = read(1, {m}), y = read(2, {m}), c = read(3, {n}), s = read(4, {n});
  ir::Expr first = pool.make(ir::ExprOp::Less, {p, pool.integer(1)});
  const auto negative = [&](ir::Expr e) { return pool.make(ir::ExprOp::Neg, {e}); };
  struct Row {
    ir::Expr term;
    bool distributes;
  };
  const Row rows[] = {
      {pool.select(first, pool.sub(pool.mul(x, c), pool.mul(y, s)),
                   pool.add(pool.mul(x, s), pool.mul(y, c))),
       true},
      {pool.select(first, pool.mul(c, x), negative(pool.mul(x, s))), true},
      {pool.select(first, pool.mul(c, x), pool.mul(y, s)), false},
      {pool.select(first, pool.mul(c, x), pool.add(pool.mul(x, s), pool.mul(x, c))), false},
      {pool.select(first, x, y), false},
      {pool.mul(x, c), false},
  };
  std::mt19937 random(5);
  for (const Row& row : rows) {
    ir::Expr found = codegen::distributed(pool, row.term);
    EXPECT_EQ(found != row.term, row.distributes) << to_string(pool, row.term);
    if (row.distributes) {
      EXPECT_NE(found->op, ir::ExprOp::Select);
    }
    for (int drawn = 0; drawn < 20; ++drawn) {
      std::map<std::pair<bool, int64_t>, double> values;  // of reads, of axes
      const auto leaf = [&](ir::Expr e) {
        const bool read = e->op == ir::ExprOp::Read;
        const auto [at, fresh] = values.try_emplace({read, read ? e->integer : e->id}, 0);
        if (fresh) at->second = static_cast<double>(random() % 3);
        return at->second;
      };
      EXPECT_EQ(evaluate(found, leaf), evaluate(row.term, leaf)) << to_string(pool, found);
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
