// Certificates notice wrong forms and hold for right ones; ranks of samples agree with the proofs.
#include <gtest/gtest.h>

#include <set>

#include "cascade/algebra/refute.h"
#include "cascade/certify/certificate.h"
#include "cascade/certify/simulate.h"
#include "support/cascade_writer.h"

namespace redfuser {
namespace {

// Numbers agree with the proofs: what is accepted has the rank of its terms, what does not separate
// shows a rank as large as the sample.
TEST(SampledRank, SeesFiniteAndGrowingRank) {
  ir::ExprPool pool;
  Writer writer(pool);
  ir::Expr m = writer.max(writer.x(0));
  const cascade::StageScope scope{pool, writer.stream, writer.cascade.stages, {}};
  EXPECT_EQ(sampled_rank(scope, writer.exp(writer.sub(writer.x(1), m)), 8), 1);
  EXPECT_EQ(sampled_rank(scope, writer.square(writer.sub(writer.x(1), m)), 8), 3);
  ir::Expr sigmoid =
      writer.div(writer.num(1), pool.add(writer.num(1), writer.exp(writer.sub(m, writer.x(1)))));
  EXPECT_EQ(sampled_rank(scope, sigmoid, 5), 5);
}

// A certificate must notice a wrong form: here the running maximum is never followed.
TEST(Certificate, RejectsAFormWithoutRepair) {
  ir::ExprPool pool;
  Writer writer(pool);
  ir::Expr p;
  softmax(writer, writer.x(0), p);
  writer.out(p, true);
  auto derived = std::get<cascade::Derivation>(derive(pool, writer.cascade));
  derived.streaming.accumulators[1].transport = nullptr;
  const cascade::Certificate certificate = certify(pool, writer.cascade, derived.streaming);
  EXPECT_FALSE(certificate.valid);
  EXPECT_NE(certificate.failure.find("where the graph gives"), std::string::npos);
}

// Elements need not be as many as in the graph, nor computed: rows that are longer than a
// certificate takes, and arithmetic of sizes and inputs, are tested on rows of plain elements.
TEST(Certificate, TestsFormsOfLongRows) {
  ir::ExprPool pool;
  Writer writer(pool, true, 30522);
  ir::Expr p;
  softmax(writer, writer.f(ir::ExprOp::Tanh, writer.div(writer.x(0), writer.x(1))), p);
  writer.out(p, true);
  const auto derived = std::get<cascade::Derivation>(derive(pool, writer.cascade));
  const cascade::Certificate certificate = certify(pool, writer.cascade, derived.streaming);
  EXPECT_TRUE(certificate.valid) << certificate.failure;
  EXPECT_GT(certificate.cases, 70);
}

// Other values change neither a key nor a certificate; a changed form or number changes both.
TEST(Certificate, IsSharedByStructure) {
  ir::ExprPool pool;
  cascade::CertificateMemo memo;
  std::set<std::string> keys;
  for (const int value : {1, 2}) {
    Writer writer(pool);
    ir::Expr p;
    softmax(writer, writer.x(value), p);
    writer.out(p, true);
    auto derived = std::get<cascade::Derivation>(derive(pool, writer.cascade));
    const auto certificate = certify(pool, writer.cascade, derived.streaming, &memo);
    EXPECT_TRUE(certificate.valid) << certificate.failure;
    EXPECT_GT(certificate.cases, 0);
    derived.streaming.accumulators[1].transport = nullptr;
    EXPECT_FALSE(certify(pool, writer.cascade, derived.streaming, &memo).valid);
    EXPECT_EQ(memo.of_elements.size(), 1u);
    keys.insert(fingerprint(writer.cascade));
  }
  EXPECT_EQ(keys.size(), 1u);
  for (const double number : {1.0, 2.0}) {
    Writer writer(pool);
    writer.out(writer.div(writer.sum(writer.x(1)), writer.num(number)));
    keys.insert(fingerprint(writer.cascade));
  }
  EXPECT_EQ(keys.size(), 3u);
}

// The variance of computed elements by the mean of their squares.
void variance(Writer& writer, ir::Expr n) {
  ir::Expr x = writer.f(ir::ExprOp::Tanh, writer.div(writer.x(0), writer.x(1)));
  ir::Expr mean = writer.div(writer.sum(x), n);
  ir::Expr squares = writer.div(writer.sum(writer.square(x)), n);
  writer.out(writer.sub(squares, writer.square(mean)));
}

// Sums of x and of x·x are not sums of unrelated elements: x is the element of both. Rows of
// elements have five lengths, rows of the graph's sizes four.
TEST(Certificate, DividesElementsThatHoldOthers) {
  ir::ExprPool pool;
  Writer writer(pool);
  variance(writer, writer.n());
  auto derived = std::get<cascade::Derivation>(derive(pool, writer.cascade));
  const cascade::Certificate certificate = certify(pool, writer.cascade, derived.streaming);
  EXPECT_TRUE(certificate.valid) << certificate.failure;
  EXPECT_EQ(certificate.cases, 9 * 5 * 3);
  derived.streaming.accumulators[1].transport = nullptr;
  EXPECT_FALSE(certify(pool, writer.cascade, derived.streaming).valid);
}

// A constant that stands for the number of elements is right for rows of that length alone.
TEST(Certificate, TestsTheGraphsLength) {
  for (const int64_t length : {5, 64, 700}) {
    ir::ExprPool pool;
    Writer writer(pool, true, length);
    variance(writer, writer.num(static_cast<double>(length)));
    auto derived = std::get<cascade::Derivation>(derive(pool, writer.cascade));
    const cascade::Certificate certificate = certify(pool, writer.cascade, derived.streaming);
    EXPECT_TRUE(certificate.valid) << certificate.failure;
    EXPECT_GT(certificate.cases, 0);
    derived.streaming.accumulators[1].transport = nullptr;
    EXPECT_FALSE(certify(pool, writer.cascade, derived.streaming).valid);
  }
}

}  // namespace
}  // namespace redfuser
