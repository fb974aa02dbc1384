// The accept and refuse lists of the algebra: each row is a cascade, its expected forms, and a
// certificate on adversarial data.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cascade/algebra/refute.h"
#include "cascade/certify/certificate.h"
#include "cascade/certify/simulate.h"
#include "cascade/derive/derive.h"
#include "support/cascade_writer.h"

namespace redfuser {
namespace {

struct Row_ {
  const char* name;
  std::function<void(Writer&)> write;
  std::vector<const char*> forms;  // empty: refused
  const char* reason = "";         // part of the refusal
};

// Σ exp(x0 - max exp(x0 - max x1)): the maximum of the exponentials falls as that of x1 rises.
ir::Expr falling_reference(Writer& w) {
  ir::Expr top = w.max(w.exp(w.sub(w.x(0), w.max(w.x(1)))));
  return w.sum(w.exp(w.sub(w.x(0), top)));
}

const std::vector<Row_>& table() {
  static const std::vector<Row_> rows = {
      {"softmax",
       [](Writer& w) {
         ir::Expr p;
         softmax(w, w.x(0), p);
         w.out(p, true);
       },
       {"plain", "rescaled"}},
      {"logsumexp",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr l = w.sum(w.exp(w.sub(w.x(0), m)));
         w.out(w.pool.add(m, w.f(ir::ExprOp::Log, l)));
       },
       {"plain", "rescaled"}},
      {"log_softmax",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr l = w.sum(w.exp(w.sub(w.x(0), m)));
         w.out(w.sub(w.sub(w.x(0), m), w.f(ir::ExprOp::Log, l)), true);
       },
       {"plain", "rescaled"}},
      {"attention",
       [](Writer& w) {
         ir::Expr p;
         softmax(w, w.x(0), p);
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"attention_masked",
       [](Writer& w) {
         ir::Expr visible = w.pool.make(ir::ExprOp::LessEqual, {w.stream, w.row});
         ir::Expr s = w.pool.select(visible, w.mul(w.x(0), w.num(0.125)), w.num(-INFINITY));
         ir::Expr p;
         softmax(w, s, p);
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"attention_nan_guard",
       [](Writer& w) {
         ir::Expr p;
         softmax(w, w.x(0), p);
         ir::Expr guarded = w.pool.select(w.f(ir::ExprOp::IsNaN, p), w.num(0), p);
         w.out(w.sum(w.mul(guarded, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"softmax_shifted_before",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr p;
         softmax(w, w.sub(w.x(0), m), p);
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "deferred", "rescaled", "rescaled"}},
      {"attention_by_log_sum_exp",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr infinite = w.pool.make(
             ir::ExprOp::Or, {w.f(ir::ExprOp::IsPosInf, m), w.f(ir::ExprOp::IsNegInf, m)});
         ir::Expr shift = w.pool.select(infinite, w.num(0), m);
         ir::Expr l = w.sum(w.exp(w.sub(w.x(0), shift)));
         ir::Expr p = w.exp(w.sub(w.x(0), w.pool.add(shift, w.f(ir::ExprOp::Log, l))));
         ir::Expr guarded = w.pool.select(w.f(ir::ExprOp::IsNaN, p), w.num(0), p);
         w.out(w.sum(w.mul(guarded, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"attention_masked_after_the_shift",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr visible = w.pool.make(ir::ExprOp::LessEqual, {w.stream, w.row});
         ir::Expr shifted = w.pool.select(visible, w.sub(w.x(0), m), w.num(-INFINITY));
         ir::Expr e = w.exp(shifted);
         ir::Expr p = w.div(e, w.sum(e));
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"variance_weighted_by_a_divisor",
       [](Writer& w) {
         ir::Expr sigma = w.pool.add(w.f(ir::ExprOp::Abs, w.x(1)), w.num(1));
         ir::Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.div(w.square(w.sub(w.x(0), mu)), sigma)));
       },
       {"plain", "deferred"}},
      {"third_moment_weighted_by_itself",
       [](Writer& w) {
         ir::Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.mul(w.x(0), w.square(w.sub(w.x(0), mu)))));
       },
       {"plain", "translated"}},
      {"attention_row_guard",
       [](Writer& w) {
         ir::Expr top = w.max(w.x(2));
         ir::Expr p;
         softmax(w, w.pool.add(w.x(0), w.x(2)), p);
         ir::Expr none = w.f(ir::ExprOp::IsNegInf, top);
         w.out(w.sum(w.mul(w.pool.select(none, w.num(0), p), w.v(1)), true));
       },
       {"plain", "plain", "rescaled", "rescaled"}},
      {"attention_16_bit_casts",
       [](Writer& w) {
         ir::Expr p;
         softmax(w, w.x(0), p);
         ir::Expr rounded = w.pool.cast(F, w.pool.cast(DType::Float16, p));
         w.out(w.sum(w.mul(rounded, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"rms_norm",
       [](Writer& w) {
         ir::Expr mean = w.div(w.sum(w.square(w.x(0))), w.n());
         ir::Expr r =
             w.f(ir::ExprOp::Reciprocal, w.f(ir::ExprOp::Sqrt, w.pool.add(mean, w.num(1e-5))));
         w.out(w.mul(w.mul(w.x(0), r), w.weight(1)), true);
       },
       {"plain"}},
      {"rms_norm_product",
       [](Writer& w) {
         ir::Expr mean = w.div(w.sum(w.square(w.x(0))), w.n());
         ir::Expr r =
             w.f(ir::ExprOp::Reciprocal, w.f(ir::ExprOp::Sqrt, w.pool.add(mean, w.num(1e-5))));
         w.out(w.sum(w.mul(w.mul(w.mul(w.x(0), r), w.weight(1)), w.v(2)), true));
       },
       {"plain", "deferred"}},
      {"variance",
       [](Writer& w) {
         ir::Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.div(w.sum(w.square(w.sub(w.x(0), mu))), w.n()));
       },
       {"plain", "translated"}},
      {"layer_norm_of_squares",
       [](Writer& w) {
         ir::Expr s2 = w.div(w.sum(w.square(w.x(0))), w.n());
         ir::Expr mu = w.div(w.sum(w.x(0)), w.n());
         ir::Expr variance = w.sub(s2, w.square(mu));
         ir::Expr deviation = w.f(ir::ExprOp::Sqrt, w.pool.add(variance, w.num(1e-5)));
         w.out(w.pool.add(w.mul(w.div(w.sub(w.x(0), mu), deviation), w.weight(1)), w.weight(2)),
               true);
       },
       {"plain", "translated"}},
      {"covariance",
       [](Writer& w) {
         ir::Expr mx = w.div(w.sum(w.x(0)), w.n());
         ir::Expr my = w.div(w.sum(w.x(1)), w.n());
         w.out(w.sum(w.mul(w.sub(w.x(0), mx), w.sub(w.x(1), my))));
       },
       {"plain", "plain", "translated"}},
      {"moment_of_inertia",
       [](Writer& w) {
         ir::Expr mass = w.f(ir::ExprOp::Abs, w.x(1));
         ir::Expr total = w.sum(w.pool.add(mass, w.num(1)));
         ir::Expr c = w.div(w.sum(w.mul(w.pool.add(mass, w.num(1)), w.x(0))), total);
         w.out(w.sum(w.mul(w.pool.add(mass, w.num(1)), w.square(w.sub(w.x(0), c)))));
       },
       {"plain", "plain", "translated"}},
      {"third_moment",
       [](Writer& w) {
         ir::Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.pool.make(ir::ExprOp::Pow, {w.sub(w.x(0), mu), w.num(3)})));
       },
       {"plain", "translated"}},
      {"l2_norm",
       [](Writer& w) {
         ir::Expr norm = w.f(ir::ExprOp::Sqrt, w.sum(w.square(w.x(0))));
         w.out(w.div(w.x(0), w.pool.make(ir::ExprOp::Max, {norm, w.num(1e-6)})), true);
       },
       {"plain"}},
      {"cosine_similarity",
       [](Writer& w) {
         ir::Expr a = w.f(ir::ExprOp::Sqrt, w.sum(w.square(w.x(0))));
         ir::Expr b = w.f(ir::ExprOp::Sqrt, w.sum(w.square(w.x(1))));
         w.out(w.sum(w.mul(w.div(w.x(0), w.pool.add(a, w.num(1))),
                           w.div(w.x(1), w.pool.add(b, w.num(1))))));
       },
       {"plain", "plain", "deferred"}},
      {"sum_by_a_falling_reference",
       [](Writer& w) { w.out(falling_reference(w)); },
       {"plain", "deferred", "rescaled"}},
      {"sum_by_a_falling_reference_alone",
       [](Writer& w) {
         ir::Expr top = w.max(w.exp(w.sub(w.x(0), w.max(w.x(1)))));
         w.out(w.sum(w.mul(w.x(0), w.exp(w.f(ir::ExprOp::Neg, top)))));
       },
       {"plain", "deferred", "deferred"}},
      {"entropy",
       [](Writer& w) {
         ir::Expr p;
         softmax(w, w.x(0), p);
         ir::Expr log_p = w.sub(w.sub(w.x(0), w.d(0)), w.f(ir::ExprOp::Log, w.d(1)));
         w.out(w.f(ir::ExprOp::Neg, w.sum(w.mul(p, log_p))));
       },
       {"plain", "rescaled", "rescaled"}},
      {"cross_entropy",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr l = w.sum(w.exp(w.sub(w.x(0), m)));
         ir::Expr log_p = w.sub(w.sub(w.x(0), m), w.f(ir::ExprOp::Log, l));
         w.out(w.f(ir::ExprOp::Neg, w.sum(w.mul(w.x(1), log_p))));
       },
       {"plain", "rescaled", "deferred"}},
      {"softmax_top_k",
       [](Writer& w) {
         ir::Expr p;
         softmax(w, w.x(0), p);
         w.stage(ir::Reduction::TopK, p, false, 2);
         w.out(w.pool.read(-6, F, {w.pool.integer(0)}));
         w.out(w.pool.read(-6, F, {w.pool.integer(1)}));
       },
       {"plain", "rescaled", "deferred"}},
      {"softmax_arg_max",
       [](Writer& w) {
         ir::Expr p;
         softmax(w, w.x(0), p);
         w.stage(ir::Reduction::ArgMax, p);
         w.out(w.pool.leaf(ir::LeafKind::Result, 2, DType::Int64));
       },
       {"plain", "rescaled", "deferred"}},
      {"absmax_scale",
       [](Writer& w) {
         ir::Expr top = w.max(w.f(ir::ExprOp::Abs, w.x(0)));
         w.out(w.f(ir::ExprOp::Round, w.div(w.x(0), w.div(w.pool.add(top, w.num(1)), w.num(127)))),
               true);
       },
       {"plain"}},
      {"linear_attention",
       [](Writer& w) {
         ir::Expr phi = w.exp(w.x(0));
         ir::Expr z = w.sum(phi);
         w.out(w.div(w.sum(w.mul(phi, w.v(1)), true), z));
       },
       {"plain", "plain"}},
      {"max_of_sum",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         w.out(w.max(w.pool.add(w.x(1), m)));
       },
       {"plain", "deferred"}},
      {"max_of_scaled",
       [](Writer& w) {
         ir::Expr l = w.sum(w.exp(w.x(0)));
         w.out(w.max(w.div(w.x(1), l)));
       },
       {"plain", "deferred"}},
      {"product_of_scaled",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         w.out(w.stage(ir::Reduction::Prod,
                       w.mul(w.f(ir::ExprOp::Tanh, w.x(1)), w.f(ir::ExprOp::Tanh, m))));
       },
       {"plain", "deferred"}},
      // Refused, with the reason.
      {"mean_absolute_deviation",
       [](Writer& w) {
         ir::Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.f(ir::ExprOp::Abs, w.sub(w.x(0), mu))));
       },
       {},
       "absolute value of a sum"},
      {"hinge",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         w.out(w.sum(w.pool.make(ir::ExprOp::Max, {w.sub(w.x(1), m), w.num(0)})));
       },
       {},
       "no product"},
      {"sigmoid_of_difference",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr z = w.exp(w.f(ir::ExprOp::Neg, w.sub(w.x(1), m)));
         w.out(w.sum(w.div(w.num(1), w.pool.add(w.num(1), z))));
       },
       {},
       "divisor is a sum"},
      {"max_of_unproved_sign",
       [](Writer& w) {
         ir::Expr s = w.sum(w.x(0));
         w.out(w.max(w.mul(w.x(1), s)));
       },
       {},
       "not proved"},
      {"quantised_product",
       [](Writer& w) {
         ir::Expr top = w.max(w.f(ir::ExprOp::Abs, w.x(0)));
         ir::Expr q = w.pool.cast(F, w.pool.cast(DType::Int8, w.div(w.x(0), top)));
         w.out(w.sum(w.mul(q, w.v(1)), true));
       },
       {},
       "rounded to int8"},
      {"comparison_with_result",
       [](Writer& w) {
         ir::Expr m = w.max(w.x(0));
         ir::Expr near = w.pool.make(ir::ExprOp::Less, {w.sub(m, w.x(0)), w.num(1)});
         w.out(w.sum(w.pool.select(near, w.x(1), w.num(0))));
       },
       {},
       "condition compares"},
      {"max_of_shifted_integers",
       [](Writer& w) {
         ir::Expr m = w.max(w.integer(0));
         w.out(w.max(w.pool.add(w.integer(1), m)));
       },
       {},
       "integers, which wrap around"},
      {"sum_of_integer_quotients",
       [](Writer& w) {
         ir::Expr m = w.max(w.integer(0));
         w.out(w.sum(w.div(w.integer(1), m)));
       },
       {},
       "integers, which wrap around"},
      {"max_of_wrapping_absolute_value",
       [](Writer& w) {
         ir::Expr size = w.f(ir::ExprOp::Abs, w.pool.read(0, DType::Int32, {w.row, w.stream}));
         w.out(w.max(w.mul(w.x(1), w.pool.cast(F, w.max(size)))));
       },
       {},
       "not proved"},
  };
  return rows;
}

class Algebra : public ::testing::TestWithParam<std::tuple<size_t, bool>> {};

TEST_P(Algebra, DerivesOrRefuses) {
  auto [index, fixed] = GetParam();
  const Row_& row = table()[index];
  ir::ExprPool pool;
  Writer writer(pool, fixed);
  row.write(writer);
  auto derived = derive(pool, writer.cascade);
  if (auto* refusal = std::get_if<cascade::StageRefusal>(&derived)) {
    ASSERT_TRUE(row.forms.empty()) << refusal->refusal.reason;
    EXPECT_NE(refusal->refusal.reason.find(row.reason), std::string::npos)
        << refusal->refusal.reason;
    EXPECT_EQ(refusal->stage, writer.cascade.stages.size() - 1);
    return;
  }
  const cascade::Derivation& derivation = std::get<cascade::Derivation>(derived);
  SCOPED_TRACE(to_string(pool, derivation.streaming));
  ASSERT_FALSE(row.forms.empty()) << "should be refused";
  ASSERT_EQ(derivation.stages.size(), row.forms.size());
  for (size_t i = 0; i < row.forms.size(); ++i) {
    EXPECT_EQ(derivation.stages[i].form, row.forms[i]) << "stage " << i;
  }
  const cascade::Certificate certificate = certify(pool, writer.cascade, derivation.streaming);
  EXPECT_TRUE(certificate.valid) << certificate.failure;
  EXPECT_GT(certificate.cases, fixed ? 20 : 70);
  EXPECT_LT(certificate.max_error, 1e-6);
}

// The first element has a maximum of exp(6.7): exp(-exp(6.7)) is 0 in double precision.
TEST(AlgebraValues, AFallingReferenceLosesNoElement) {
  ir::ExprPool pool;
  Writer w(pool);
  w.out(falling_reference(w));
  const auto derived = derive(pool, w.cascade);
  const auto& streaming = std::get<cascade::Derivation>(derived).streaming;
  cascade::Row row;
  row.length = 2;
  row.values = [](ir::Expr e) -> double {
    if (e->op != ir::ExprOp::Read) return e->op == ir::ExprOp::Symbol ? 2 : 0;
    return e->integer == 1 && e->args[1]->integer == 0 ? -6.7 : 0;
  };
  for (const std::vector<int64_t>& bounds : {std::vector<int64_t>{0, 2}, {0, 1, 2}}) {
    const cascade::RowResult result = run_streaming(pool, streaming, row, bounds, 1);
    EXPECT_DOUBLE_EQ(result.outputs[0][0], 2 * std::exp(-1.0));
  }
  EXPECT_DOUBLE_EQ(run_unfused(pool, w.cascade, row).outputs[0][0], 2 * std::exp(-1.0));
}

INSTANTIATE_TEST_SUITE_P(Table, Algebra,
                         ::testing::Combine(::testing::Range<size_t>(0, table().size()),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(table()[std::get<0>(info.param)].name) +
                                  (std::get<1>(info.param) ? "_fixed" : "_symbolic");
                         });

}  // namespace
}  // namespace redfuser
