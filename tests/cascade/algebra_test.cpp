// The accept and refuse lists of the algebra: each row is a cascade, its expected forms, and a
// certificate on adversarial data.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "cascade/algebra/refute.h"
#include "cascade/certify/certificate.h"
#include "cascade/derive/derive.h"

namespace redfuser {
namespace {

constexpr DType F = DType::Float32;

// Writes cascades briefly: x(k) is input k at the streamed element, v is a value row with a column.
struct Writer {
  ExprPool& pool;
  Cascade cascade;
  Expr row, stream, column;

  explicit Writer(ExprPool& p, bool fixed = false) : pool(p) {
    row = pool.axis("i", pool.symbol("rows"));
    stream = pool.axis("j", fixed ? pool.integer(48) : pool.symbol("n"));
    column = pool.axis("c", pool.integer(4));
    cascade.rows = {row};
    cascade.stream = stream;
  }
  Expr x(int k) { return pool.read(k, F, {row, stream}); }
  Expr integer(int k) { return pool.read(k, DType::Int64, {row, stream}); }
  Expr weight(int k) { return pool.read(k, F, {stream}); }
  Expr v(int k) { return pool.read(k, F, {stream, column}); }
  Expr d(int k) { return pool.leaf(LeafKind::Result, k, cascade.stages[k].body->dtype); }
  Expr num(double value) { return pool.number(value, F); }
  Expr n() { return pool.cast(F, stream->extent()); }
  Expr exp(Expr e) { return pool.make(ExprOp::Exp, {e}); }
  Expr f(ExprOp op, Expr e) { return pool.make(op, {e}); }
  Expr sub(Expr a, Expr b) { return pool.sub(a, b); }
  Expr mul(Expr a, Expr b) { return pool.mul(a, b); }
  Expr div(Expr a, Expr b) { return pool.div(a, b); }
  Expr square(Expr a) { return pool.mul(a, a); }

  Expr stage(Reduction reduction, Expr body, bool columns = false, int64_t k = 1) {
    Stage stage{reduction, body, {}, k, body->dtype, -1};
    if (columns) stage.columns = {column};
    cascade.stages.push_back(stage);
    return d(static_cast<int>(cascade.stages.size()) - 1);
  }
  Expr sum(Expr body, bool columns = false) { return stage(Reduction::Sum, body, columns); }
  Expr max(Expr body) { return stage(Reduction::Max, body); }
  void out(Expr body, bool maps_back = false) {
    cascade.outputs.push_back({static_cast<ValueId>(cascade.outputs.size()), body, {}, maps_back});
  }
};

struct Row_ {
  const char* name;
  std::function<void(Writer&)> write;
  std::vector<const char*> forms;  // empty: refused
  const char* reason = "";         // part of the refusal
};

void softmax(Writer& w, Expr s, Expr& p) {
  Expr m = w.max(s);
  Expr e = w.exp(w.sub(s, m));
  Expr l = w.sum(e);
  p = w.div(e, l);
}

const std::vector<Row_>& table() {
  static const std::vector<Row_> rows = {
      {"softmax",
       [](Writer& w) {
         Expr p;
         softmax(w, w.x(0), p);
         w.out(p, true);
       },
       {"plain", "rescaled"}},
      {"logsumexp",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr l = w.sum(w.exp(w.sub(w.x(0), m)));
         w.out(w.pool.add(m, w.f(ExprOp::Log, l)));
       },
       {"plain", "rescaled"}},
      {"log_softmax",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr l = w.sum(w.exp(w.sub(w.x(0), m)));
         w.out(w.sub(w.sub(w.x(0), m), w.f(ExprOp::Log, l)), true);
       },
       {"plain", "rescaled"}},
      {"attention",
       [](Writer& w) {
         Expr p;
         softmax(w, w.x(0), p);
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"attention_masked",
       [](Writer& w) {
         Expr visible = w.pool.make(ExprOp::LessEqual, {w.stream, w.row});
         Expr s = w.pool.select(visible, w.mul(w.x(0), w.num(0.125)), w.num(-INFINITY));
         Expr p;
         softmax(w, s, p);
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"attention_nan_guard",
       [](Writer& w) {
         Expr p;
         softmax(w, w.x(0), p);
         Expr guarded = w.pool.select(w.f(ExprOp::IsNaN, p), w.num(0), p);
         w.out(w.sum(w.mul(guarded, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"softmax_shifted_before",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr p;
         softmax(w, w.sub(w.x(0), m), p);
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "deferred", "rescaled", "rescaled"}},
      {"attention_by_log_sum_exp",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr infinite =
             w.pool.make(ExprOp::Or, {w.f(ExprOp::IsPosInf, m), w.f(ExprOp::IsNegInf, m)});
         Expr shift = w.pool.select(infinite, w.num(0), m);
         Expr l = w.sum(w.exp(w.sub(w.x(0), shift)));
         Expr p = w.exp(w.sub(w.x(0), w.pool.add(shift, w.f(ExprOp::Log, l))));
         Expr guarded = w.pool.select(w.f(ExprOp::IsNaN, p), w.num(0), p);
         w.out(w.sum(w.mul(guarded, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"attention_masked_after_the_shift",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr visible = w.pool.make(ExprOp::LessEqual, {w.stream, w.row});
         Expr shifted = w.pool.select(visible, w.sub(w.x(0), m), w.num(-INFINITY));
         Expr e = w.exp(shifted);
         Expr p = w.div(e, w.sum(e));
         w.out(w.sum(w.mul(p, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"variance_weighted_by_a_divisor",
       [](Writer& w) {
         Expr sigma = w.pool.add(w.f(ExprOp::Abs, w.x(1)), w.num(1));
         Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.div(w.square(w.sub(w.x(0), mu)), sigma)));
       },
       {"plain", "deferred"}},
      {"third_moment_weighted_by_itself",
       [](Writer& w) {
         Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.mul(w.x(0), w.square(w.sub(w.x(0), mu)))));
       },
       {"plain", "translated"}},
      {"attention_row_guard",
       [](Writer& w) {
         Expr top = w.max(w.x(2));
         Expr p;
         softmax(w, w.pool.add(w.x(0), w.x(2)), p);
         Expr none = w.f(ExprOp::IsNegInf, top);
         w.out(w.sum(w.mul(w.pool.select(none, w.num(0), p), w.v(1)), true));
       },
       {"plain", "plain", "rescaled", "rescaled"}},
      {"attention_16_bit_casts",
       [](Writer& w) {
         Expr p;
         softmax(w, w.x(0), p);
         Expr rounded = w.pool.cast(F, w.pool.cast(DType::Float16, p));
         w.out(w.sum(w.mul(rounded, w.v(1)), true));
       },
       {"plain", "rescaled", "rescaled"}},
      {"rms_norm",
       [](Writer& w) {
         Expr mean = w.div(w.sum(w.square(w.x(0))), w.n());
         Expr r = w.f(ExprOp::Reciprocal, w.f(ExprOp::Sqrt, w.pool.add(mean, w.num(1e-5))));
         w.out(w.mul(w.mul(w.x(0), r), w.weight(1)), true);
       },
       {"plain"}},
      {"rms_norm_product",
       [](Writer& w) {
         Expr mean = w.div(w.sum(w.square(w.x(0))), w.n());
         Expr r = w.f(ExprOp::Reciprocal, w.f(ExprOp::Sqrt, w.pool.add(mean, w.num(1e-5))));
         w.out(w.sum(w.mul(w.mul(w.mul(w.x(0), r), w.weight(1)), w.v(2)), true));
       },
       {"plain", "deferred"}},
      {"variance",
       [](Writer& w) {
         Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.div(w.sum(w.square(w.sub(w.x(0), mu))), w.n()));
       },
       {"plain", "translated"}},
      {"layer_norm_of_squares",
       [](Writer& w) {
         Expr s2 = w.div(w.sum(w.square(w.x(0))), w.n());
         Expr mu = w.div(w.sum(w.x(0)), w.n());
         Expr variance = w.sub(s2, w.square(mu));
         Expr deviation = w.f(ExprOp::Sqrt, w.pool.add(variance, w.num(1e-5)));
         w.out(w.pool.add(w.mul(w.div(w.sub(w.x(0), mu), deviation), w.weight(1)), w.weight(2)),
               true);
       },
       {"plain", "translated"}},
      {"covariance",
       [](Writer& w) {
         Expr mx = w.div(w.sum(w.x(0)), w.n());
         Expr my = w.div(w.sum(w.x(1)), w.n());
         w.out(w.sum(w.mul(w.sub(w.x(0), mx), w.sub(w.x(1), my))));
       },
       {"plain", "plain", "translated"}},
      {"moment_of_inertia",
       [](Writer& w) {
         Expr mass = w.f(ExprOp::Abs, w.x(1));
         Expr total = w.sum(w.pool.add(mass, w.num(1)));
         Expr c = w.div(w.sum(w.mul(w.pool.add(mass, w.num(1)), w.x(0))), total);
         w.out(w.sum(w.mul(w.pool.add(mass, w.num(1)), w.square(w.sub(w.x(0), c)))));
       },
       {"plain", "plain", "translated"}},
      {"third_moment",
       [](Writer& w) {
         Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.pool.make(ExprOp::Pow, {w.sub(w.x(0), mu), w.num(3)})));
       },
       {"plain", "translated"}},
      {"l2_norm",
       [](Writer& w) {
         Expr norm = w.f(ExprOp::Sqrt, w.sum(w.square(w.x(0))));
         w.out(w.div(w.x(0), w.pool.make(ExprOp::Max, {norm, w.num(1e-6)})), true);
       },
       {"plain"}},
      {"cosine_similarity",
       [](Writer& w) {
         Expr a = w.f(ExprOp::Sqrt, w.sum(w.square(w.x(0))));
         Expr b = w.f(ExprOp::Sqrt, w.sum(w.square(w.x(1))));
         w.out(w.sum(w.mul(w.div(w.x(0), w.pool.add(a, w.num(1))),
                           w.div(w.x(1), w.pool.add(b, w.num(1))))));
       },
       {"plain", "plain", "deferred"}},
      {"entropy",
       [](Writer& w) {
         Expr p;
         softmax(w, w.x(0), p);
         Expr log_p = w.sub(w.sub(w.x(0), w.d(0)), w.f(ExprOp::Log, w.d(1)));
         w.out(w.f(ExprOp::Neg, w.sum(w.mul(p, log_p))));
       },
       {"plain", "rescaled", "rescaled"}},
      {"cross_entropy",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr l = w.sum(w.exp(w.sub(w.x(0), m)));
         Expr log_p = w.sub(w.sub(w.x(0), m), w.f(ExprOp::Log, l));
         w.out(w.f(ExprOp::Neg, w.sum(w.mul(w.x(1), log_p))));
       },
       {"plain", "rescaled", "deferred"}},
      {"softmax_top_k",
       [](Writer& w) {
         Expr p;
         softmax(w, w.x(0), p);
         w.stage(Reduction::TopK, p, false, 2);
         w.out(w.pool.read(-6, F, {w.pool.integer(0)}));
         w.out(w.pool.read(-6, F, {w.pool.integer(1)}));
       },
       {"plain", "rescaled", "deferred"}},
      {"softmax_arg_max",
       [](Writer& w) {
         Expr p;
         softmax(w, w.x(0), p);
         w.stage(Reduction::ArgMax, p);
         w.out(w.pool.leaf(LeafKind::Result, 2, DType::Int64));
       },
       {"plain", "rescaled", "deferred"}},
      {"absmax_scale",
       [](Writer& w) {
         Expr top = w.max(w.f(ExprOp::Abs, w.x(0)));
         w.out(w.f(ExprOp::Round, w.div(w.x(0), w.div(w.pool.add(top, w.num(1)), w.num(127)))),
               true);
       },
       {"plain"}},
      {"linear_attention",
       [](Writer& w) {
         Expr phi = w.exp(w.x(0));
         Expr z = w.sum(phi);
         w.out(w.div(w.sum(w.mul(phi, w.v(1)), true), z));
       },
       {"plain", "plain"}},
      {"max_of_sum",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         w.out(w.max(w.pool.add(w.x(1), m)));
       },
       {"plain", "deferred"}},
      {"max_of_scaled",
       [](Writer& w) {
         Expr l = w.sum(w.exp(w.x(0)));
         w.out(w.max(w.div(w.x(1), l)));
       },
       {"plain", "deferred"}},
      {"product_of_scaled",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         w.out(w.stage(Reduction::Prod, w.mul(w.f(ExprOp::Tanh, w.x(1)), w.f(ExprOp::Tanh, m))));
       },
       {"plain", "deferred"}},
      // Refused, with the reason.
      {"mean_absolute_deviation",
       [](Writer& w) {
         Expr mu = w.div(w.sum(w.x(0)), w.n());
         w.out(w.sum(w.f(ExprOp::Abs, w.sub(w.x(0), mu))));
       },
       {},
       "absolute value of a sum"},
      {"hinge",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         w.out(w.sum(w.pool.make(ExprOp::Max, {w.sub(w.x(1), m), w.num(0)})));
       },
       {},
       "no product"},
      {"sigmoid_of_difference",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr z = w.exp(w.f(ExprOp::Neg, w.sub(w.x(1), m)));
         w.out(w.sum(w.div(w.num(1), w.pool.add(w.num(1), z))));
       },
       {},
       "divisor is a sum"},
      {"max_of_unproved_sign",
       [](Writer& w) {
         Expr s = w.sum(w.x(0));
         w.out(w.max(w.mul(w.x(1), s)));
       },
       {},
       "not proved"},
      {"quantised_product",
       [](Writer& w) {
         Expr top = w.max(w.f(ExprOp::Abs, w.x(0)));
         Expr q = w.pool.cast(F, w.pool.cast(DType::Int8, w.div(w.x(0), top)));
         w.out(w.sum(w.mul(q, w.v(1)), true));
       },
       {},
       "rounded to int8"},
      {"comparison_with_result",
       [](Writer& w) {
         Expr m = w.max(w.x(0));
         Expr near = w.pool.make(ExprOp::Less, {w.sub(m, w.x(0)), w.num(1)});
         w.out(w.sum(w.pool.select(near, w.x(1), w.num(0))));
       },
       {},
       "condition compares"},
      {"max_of_shifted_integers",
       [](Writer& w) {
         Expr m = w.max(w.integer(0));
         w.out(w.max(w.pool.add(w.integer(1), m)));
       },
       {},
       "integers, which wrap around"},
      {"sum_of_integer_quotients",
       [](Writer& w) {
         Expr m = w.max(w.integer(0));
         w.out(w.sum(w.div(w.integer(1), m)));
       },
       {},
       "integers, which wrap around"},
      {"max_of_wrapping_absolute_value",
       [](Writer& w) {
         Expr size = w.f(ExprOp::Abs, w.pool.read(0, DType::Int32, {w.row, w.stream}));
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
  ExprPool pool;
  Writer writer(pool, fixed);
  row.write(writer);
  auto derived = derive(pool, writer.cascade);
  if (auto* refusal = std::get_if<StageRefusal>(&derived)) {
    ASSERT_TRUE(row.forms.empty()) << refusal->refusal.reason;
    EXPECT_NE(refusal->refusal.reason.find(row.reason), std::string::npos)
        << refusal->refusal.reason;
    EXPECT_EQ(refusal->stage, writer.cascade.stages.size() - 1);
    return;
  }
  const Derivation& derivation = std::get<Derivation>(derived);
  SCOPED_TRACE(to_string(pool, derivation.streaming));
  ASSERT_FALSE(row.forms.empty()) << "should be refused";
  ASSERT_EQ(derivation.stages.size(), row.forms.size());
  for (size_t i = 0; i < row.forms.size(); ++i) {
    EXPECT_EQ(derivation.stages[i].form, row.forms[i]) << "stage " << i;
  }
  const Certificate certificate = certify(pool, writer.cascade, derivation.streaming);
  EXPECT_TRUE(certificate.valid) << certificate.failure;
  EXPECT_GT(certificate.cases, fixed ? 20 : 70);
  EXPECT_LT(certificate.max_error, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Table, Algebra,
                         ::testing::Combine(::testing::Range<size_t>(0, table().size()),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(table()[std::get<0>(info.param)].name) +
                                  (std::get<1>(info.param) ? "_fixed" : "_symbolic");
                         });

// Numbers agree with the proofs: what is accepted has the rank of its terms, what does not separate
// shows a rank as large as the sample.
TEST(SampledRank, SeesFiniteAndGrowingRank) {
  ExprPool pool;
  Writer writer(pool);
  Expr m = writer.max(writer.x(0));
  const StageScope scope{pool, writer.stream, writer.cascade.stages, {}};
  EXPECT_EQ(sampled_rank(scope, writer.exp(writer.sub(writer.x(1), m)), 8), 1);
  EXPECT_EQ(sampled_rank(scope, writer.square(writer.sub(writer.x(1), m)), 8), 3);
  Expr sigmoid =
      writer.div(writer.num(1), pool.add(writer.num(1), writer.exp(writer.sub(m, writer.x(1)))));
  EXPECT_EQ(sampled_rank(scope, sigmoid, 5), 5);
}

// A certificate must notice a wrong form: here the running maximum is never followed.
TEST(Certificate, RejectsAFormWithoutRepair) {
  ExprPool pool;
  Writer writer(pool);
  Expr p;
  softmax(writer, writer.x(0), p);
  writer.out(p, true);
  auto derived = std::get<Derivation>(derive(pool, writer.cascade));
  derived.streaming.accumulators[1].transport = nullptr;
  const Certificate certificate = certify(pool, writer.cascade, derived.streaming);
  EXPECT_FALSE(certificate.valid);
  EXPECT_NE(certificate.failure.find("where the graph gives"), std::string::npos);
}

}  // namespace
}  // namespace redfuser
