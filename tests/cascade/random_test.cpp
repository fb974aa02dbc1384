// Random cascades: the streaming form against the cascade itself over every segmentation, and the
// decisions on sums against the numeric rank of sampled matrices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>

#include "cascade/certify/certificate.h"
#include "cascade/derive/centre.h"
#include "cascade/derive/derive.h"
#include "ir/evaluate.h"
#include "support/cascade_generator.h"

namespace redfuser {
namespace {

// REDFUSER_TEST_SEED draws other cascades.
const uint64_t kSeed = [] {
  const char* text = std::getenv("REDFUSER_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 20250611ull;
}();
constexpr int kCascades = 300;

cascade::Cascade draw(ir::ExprPool& pool, uint64_t seed) {
  return CascadeGenerator(pool, std::mt19937_64(seed)).cascade();
}

// F at streamed element a and draw b of the earlier results, everything between low and 3.
double sampled(const cascade::StageScope& scope, ir::Expr body, uint64_t a, uint64_t b,
               double low) {
  return evaluate(body, [&](ir::Expr e) -> double {
    if (e->op == ir::ExprOp::Symbol) return 5;
    if (e->op == ir::ExprOp::Axis) return e == scope.stream ? static_cast<double>(a) : 0;
    const bool result = e->op == ir::ExprOp::Leaf;
    const uint64_t at = result ? b : static_cast<uint64_t>(e->args.back()->integer);
    std::mt19937_64 random((static_cast<uint64_t>(e->integer) * 2 + result) * 7919 + at * 104729);
    random.discard(3);
    return std::uniform_real_distribution<double>(low, 3)(random);
  });
}

constexpr size_t kSamples = 40;
constexpr int kGrowing = 6;  // a sampled rank above this is taken for an infinite one
using Matrix = std::vector<std::vector<double>>;

// F at as many finite points; empty if there are too few of them.
Matrix sampled_matrix(const cascade::StageScope& scope, ir::Expr body, double low) {
  constexpr uint64_t kTries = 400;
  Matrix matrix;
  std::vector<uint64_t> columns;
  for (uint64_t b = 0; b < kTries && columns.size() < kSamples; ++b) {
    if (std::isfinite(sampled(scope, body, 0, b, low))) columns.push_back(b);
  }
  if (columns.size() < kSamples) return {};
  for (uint64_t a = 0; a < kTries && matrix.size() < kSamples; ++a) {
    std::vector<double> values;
    for (uint64_t b : columns) values.push_back(sampled(scope, body, a, b, low));
    if (std::all_of(values.begin(), values.end(), [](double v) { return std::abs(v) < 1e6; })) {
      matrix.push_back(values);
    }
  }
  return matrix.size() < kSamples ? Matrix{} : matrix;
}

// Scales rows and columns to a largest magnitude of 1, which keeps the rank.
void equilibrate(Matrix& m) {
  for (auto& values : m) {
    double largest = 0;
    for (double value : values) largest = std::max(largest, std::abs(value));
    for (double& value : values) value /= largest > 0 ? largest : 1;
  }
  for (size_t k = 0; k < m[0].size(); ++k) {
    double largest = 0;
    for (const auto& values : m) largest = std::max(largest, std::abs(values[k]));
    for (auto& values : m) values[k] /= largest > 0 ? largest : 1;
  }
}

// By elimination with full pivoting.
int numeric_rank(Matrix m) {
  equilibrate(m);
  for (size_t step = 0; step < m.size(); ++step) {
    size_t row = step, column = step;
    for (size_t i = step; i < m.size(); ++i) {
      for (size_t k = step; k < m.size(); ++k) {
        if (std::abs(m[i][k]) > std::abs(m[row][column])) {
          row = i;
          column = k;
        }
      }
    }
    if (std::abs(m[row][column]) <= 1e-11) return static_cast<int>(step);
    std::swap(m[step], m[row]);
    for (auto& values : m) std::swap(values[step], values[column]);
    for (size_t i = step + 1; i < m.size(); ++i) {
      const double factor = m[i][step] / m[step][step];
      for (size_t k = step; k < m.size(); ++k) m[i][k] -= factor * m[step][k];
    }
  }
  return static_cast<int>(m.size());
}

TEST(RandomCascades, StreamLikeTheCascade) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  int accepted = 0, degenerate = 0;
  for (int number = 0; number < kCascades; ++number) {
    ir::ExprPool pool;
    const uint64_t seed = kSeed + static_cast<uint64_t>(number);
    const cascade::Cascade cascade = draw(pool, seed);
    auto derived = derive(pool, cascade);
    if (!std::holds_alternative<cascade::Derivation>(derived)) continue;
    ++accepted;
    const cascade::Streaming& streaming = std::get<cascade::Derivation>(derived).streaming;
    const auto found = mismatch(pool, cascade, streaming, seed);
    if (!found) continue;
    // A quotient or root of results that no element selects may be NaN, and 0·NaN is not 0; an
    // infinity may become a NaN. The certificate refuses these.
    const cascade::Certificate certificate = certify(pool, cascade, streaming);
    EXPECT_FALSE(found->finite || certificate.valid)
        << "cascade " << number << ": " << found->text << "\n"
        << to_string(pool, cascade) << to_string(pool, streaming)
        << "certificate: " << certificate.failure;
    ++degenerate;
  }
  std::printf("%d of %d cascades accepted, %d degenerate\n", accepted, kCascades, degenerate);
  EXPECT_GT(accepted, kCascades / 4);
  EXPECT_LE(degenerate, accepted / 20);
}

// Reasons that do not claim that the body has no finite rank.
bool other_reason(const std::string& reason) {
  for (const char* kind : {"sign", "rounded", "condition", "NaN test", "guarded", "too many terms",
                           "absolute value", "power or root", "logarithm"}) {
    if (reason.find(kind) != std::string::npos) return true;
  }
  return false;
}

bool has_extremum(ir::Expr body) {
  bool found = false;
  visit(body, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Max || e->op == ir::ExprOp::Min; });
  return found;
}

// A maximum may have a finite rank that needs signs or bounds to see: max(x·a, x·b), max(e^x, x).
TEST(RandomCascades, SumsAreAcceptedWhereTheyHaveFiniteRank) {
  int accepted = 0, refused = 0, missed = 0;
  for (int number = 0; number < kCascades; ++number) {
    ir::ExprPool pool;
    const cascade::Cascade drawn = draw(pool, kSeed + static_cast<uint64_t>(number));
    const cascade::Cascade cascade = centre_moments(pool, drawn);
    for (size_t i = 0; i < cascade.stages.size(); ++i) {
      const cascade::Stage& stage = cascade.stages[i];
      const cascade::StageScope scope{pool, cascade.stream, cascade.stages, {}};
      if (stage.reduction != ir::Reduction::Sum || !scope.mixed(stage.body)) continue;
      SCOPED_TRACE(fmt::format("cascade {}, stage {}: {}", number, i, to_string(pool, stage.body)));
      const auto decomposed = decompose(scope, stage.body);
      Matrix matrix = sampled_matrix(scope, stage.body, -3);
      if (matrix.empty()) matrix = sampled_matrix(scope, stage.body, 0.5);
      if (matrix.empty()) continue;
      const int rank = numeric_rank(std::move(matrix));
      if (auto* terms = std::get_if<std::vector<cascade::Term>>(&decomposed)) {
        ++accepted;
        EXPECT_LE(rank, static_cast<int>(terms->size()));
      } else {
        ++refused;
        const std::string& reason = std::get<cascade::Refusal>(decomposed).reason;
        if (rank > kGrowing || other_reason(reason)) continue;
        ++missed;
        EXPECT_TRUE(has_extremum(stage.body)) << "rank " << rank << ": " << reason;
      }
    }
  }
  std::printf("%d sums accepted, %d refused, %d of them of finite rank\n", accepted, refused,
              missed);
  EXPECT_LE(missed, refused / 6);
  EXPECT_GT(accepted, kCascades / 2);
  EXPECT_GT(refused, kCascades / 6);
}

}  // namespace
}  // namespace redfuser
