// Random cascades: the streaming form against the cascade itself over every segmentation, and the
// decisions on sums against the numeric rank of sampled matrices.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>

#include "cascade/certificate.h"
#include "cascade/derive.h"
#include "cascade/simulate.h"

namespace redfuser {
namespace {

constexpr DType F = DType::Float32;
// REDFUSER_TEST_SEED draws other cascades.
const uint64_t kSeed = [] {
  const char* text = std::getenv("REDFUSER_TEST_SEED");
  return text ? std::strtoull(text, nullptr, 10) : 20250611ull;
}();
constexpr int kCascades = 300;
constexpr int kInputs = 2;
constexpr int64_t kRowValue = 9;  // the input that is read without the streamed axis

// Draws a cascade whose bodies range from products to anything.
class Generator {
 public:
  Generator(ExprPool& pool, uint64_t seed) : pool_(pool), random_(seed) {}

  Cascade cascade() {
    row_ = pool_.axis("i", pool_.symbol("rows"));
    stream_ = pool_.axis("j", pool_.symbol("n"));
    cascade_.rows = {row_};
    cascade_.stream = stream_;
    const int stages = 2 + below(4);
    for (int i = 0; i < stages; ++i) add_stage();
    for (int i = 0; i < stages; ++i) {
      cascade_.outputs.push_back({static_cast<ValueId>(i), leaf(i), {}, false});
    }
    cascade_.outputs.push_back({static_cast<ValueId>(stages), mixed(1), {}, true});
    return cascade_;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  Expr make(ExprOp op, Expr a) { return pool_.make(op, {a}); }
  Expr make(ExprOp op, Expr a, Expr b) { return pool_.make(op, {a, b}); }
  Expr number(double value) { return pool_.number(value, F); }
  Expr constant() { return number((below(15) + 2) / 8.0 * (below(3) ? 1 : -1)); }
  Expr leaf(int stage) { return pool_.leaf(LeafKind::Result, stage, F); }
  Expr input() { return pool_.read(below(kInputs), F, {row_, stream_}); }

  void add_stage() {
    Stage stage;
    const int kind = below(10);
    stage.reduction = kind < 6    ? Reduction::Sum
                      : kind == 6 ? Reduction::Prod
                      : kind == 7 ? Reduction::Min
                                  : Reduction::Max;
    const bool first = cascade_.stages.empty();
    if (first && below(2)) stage.reduction = Reduction::Max;
    stage.body = first ? streamed(2) : mixed(2);
    stage.dtype = F;
    cascade_.stages.push_back(stage);
  }

  // Of the streamed element alone.
  Expr streamed(int depth) {
    if (depth == 0) return below(6) ? input() : constant();
    switch (below(10)) {
      case 0:
        return pool_.add(streamed(depth - 1), streamed(depth - 1));
      case 1:
        return difference(streamed(depth - 1), streamed(depth - 1));
      case 2:
        return pool_.mul(streamed(depth - 1), streamed(depth - 1));
      case 3:
        return make(ExprOp::Exp, streamed(depth - 1));
      case 4:
        return make(ExprOp::Tanh, streamed(depth - 1));
      case 5:
        return make(ExprOp::Abs, streamed(depth - 1));
      case 6:
        return pool_.select(condition(), streamed(depth - 1), streamed(depth - 1));
      default:
        return input();
    }
  }

  Expr condition() { return make(ExprOp::Less, input(), constant()); }

  Expr any_result() { return leaf(below(static_cast<int>(cascade_.stages.size()))); }

  // Never e - e, which makes all that follows infinite or zero.
  Expr difference(Expr a, Expr b) { return pool_.sub(a, a == b ? constant() : b); }

  // Of earlier results (and of values of the row) alone.
  Expr results(int depth) {
    if (depth == 0) {
      if (!below(8)) return pool_.read(kRowValue, F, {row_});
      return any_result();
    }
    switch (below(9)) {
      case 0:
        return pool_.add(results(depth - 1), constant());
      case 1:
        return pool_.mul(results(depth - 1), constant());
      case 2:
        return make(ExprOp::Log, pool_.add(make(ExprOp::Abs, results(depth - 1)), number(1)));
      case 3:
        return make(ExprOp::Sqrt, pool_.add(make(ExprOp::Abs, results(depth - 1)), number(0.5)));
      case 4:
        return pool_.div(results(depth - 1), pool_.cast(F, stream_->extent()));
      case 5:
        return make(ExprOp::Reciprocal,
                    pool_.add(make(ExprOp::Abs, results(depth - 1)), number(1)));
      case 6:
        return difference(any_result(), any_result());
      default:
        return results(0);
    }
  }

  Expr mixed(int depth) {
    switch (below(depth == 0 ? 6 : 14)) {
      case 0:
        return streamed(1);
      case 1:
        return pool_.mul(streamed(1), results(1));
      case 2:
        return pool_.div(streamed(1), results(1));
      case 3:
        return pool_.sub(streamed(1), results(1));
      case 4:
        return make(ExprOp::Exp, pool_.sub(streamed(1), results(1)));
      case 5:
        return make(ExprOp::Pow, pool_.sub(streamed(0), results(0)), number(2 + below(2)));
      case 6:
        return pool_.add(mixed(depth - 1), mixed(depth - 1));
      case 7:
        return pool_.mul(mixed(depth - 1), mixed(depth - 1));
      case 8:
        return pool_.select(condition(), mixed(depth - 1), mixed(depth - 1));
      case 9:
        return pool_.select(make(ExprOp::Less, any_result(), constant()), mixed(depth - 1),
                            mixed(depth - 1));
      case 10:
        return make(below(2) ? ExprOp::Max : ExprOp::Min, mixed(depth - 1), mixed(depth - 1));
      case 11: {
        constexpr ExprOp kUnary[] = {ExprOp::Exp, ExprOp::Log,  ExprOp::Tanh,
                                     ExprOp::Abs, ExprOp::Sqrt, ExprOp::Neg};
        return make(kUnary[below(6)], mixed(depth - 1));
      }
      case 12:
        return pool_.div(mixed(depth - 1), mixed(depth - 1));
      default:
        return pool_.cast(F, pool_.cast(DType::Float16, mixed(depth - 1)));
    }
  }

  ExprPool& pool_;
  std::mt19937_64 random_;
  Cascade cascade_;
  Expr row_ = nullptr, stream_ = nullptr;
};

// Moderate values of either sign, a quarter of them negative, so that logarithms are often defined.
double moderate(uint64_t a, uint64_t b) {
  std::mt19937_64 random(a * 1000003 + b * 7919 + 5);
  random.discard(2);
  const double value = std::uniform_real_distribution<double>(0.25, 1.75)(random);
  return random() % 4 ? value : -value;
}

Row row_of(int64_t length, uint64_t seed) {
  Row row;
  row.length = length;
  row.values = [=](Expr e) -> double {
    if (e->op == ExprOp::Symbol) return static_cast<double>(length);
    if (e->op == ExprOp::Axis) return 0;
    const Expr index = e->args.back();
    return moderate(seed + static_cast<uint64_t>(e->integer) * 97,
                    static_cast<uint64_t>(index->integer));
  };
  return row;
}

// All ways to cut [0, length) into segments, and one with empty segments.
std::vector<std::vector<int64_t>> segmentations(int64_t length) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t cuts = 0; cuts < int64_t{1} << (length - 1); ++cuts) {
    std::vector<int64_t> bounds{0};
    for (int64_t i = 1; i < length; ++i) {
      if (cuts >> (i - 1) & 1) bounds.push_back(i);
    }
    bounds.push_back(length);
    all.push_back(bounds);
  }
  all.push_back({0, 0, length / 2, length / 2, length, length});
  return all;
}

struct Mismatch {
  std::string text;
  bool finite = false;  // both values are
};

std::optional<Mismatch> mismatch(const RowResult& actual, const RowResult& expected) {
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    for (size_t i = 0; i < expected.outputs[o].size(); ++i) {
      const double a = actual.outputs[o][i], e = expected.outputs[o][i];
      if (a == e || (std::isnan(a) && std::isnan(e))) continue;
      if (std::abs(a - e) <= 1e-8 * std::max({1.0, std::abs(a), std::abs(e)})) continue;
      return Mismatch{fmt::format("output {} at {}: {} for {}", o, i, a, e),
                      std::isfinite(a) && std::isfinite(e)};
    }
  }
  return std::nullopt;
}

// The first difference over all segmentations and tile sizes of short rows.
std::optional<Mismatch> mismatch(ExprPool& pool, const Cascade& cascade, const Streaming& streaming,
                                 uint64_t seed) {
  for (int64_t length : {1, 2, 3, 4, 6}) {
    const Row row = row_of(length, seed);
    const RowResult expected = run_unfused(pool, cascade, row);
    for (const auto& bounds : segmentations(length)) {
      for (int64_t tile = 1; tile <= 3; ++tile) {
        auto found = mismatch(run_streaming(pool, streaming, row, bounds, tile), expected);
        if (!found) continue;
        found->text +=
            fmt::format(" ({} elements, {} segments, tile {})", length, bounds.size() - 1, tile);
        return found;
      }
    }
  }
  return std::nullopt;
}

// F at streamed element a and draw b of the earlier results, everything between low and 3.
double sampled(const StageScope& scope, Expr body, uint64_t a, uint64_t b, double low) {
  return evaluate(body, [&](Expr e) -> double {
    if (e->op == ExprOp::Symbol) return 5;
    if (e->op == ExprOp::Axis) return e == scope.stream ? static_cast<double>(a) : 0;
    const bool result = e->op == ExprOp::Leaf;
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
Matrix sampled_matrix(const StageScope& scope, Expr body, double low) {
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
    ExprPool pool;
    const uint64_t seed = kSeed + static_cast<uint64_t>(number);
    const Cascade cascade = Generator(pool, seed).cascade();
    auto derived = derive(pool, cascade);
    if (!std::holds_alternative<Derivation>(derived)) continue;
    ++accepted;
    const Streaming& streaming = std::get<Derivation>(derived).streaming;
    const auto found = mismatch(pool, cascade, streaming, seed);
    if (!found) continue;
    // A quotient or root of results that no element selects may be NaN, and 0·NaN is not 0; an
    // infinity may become a NaN. The certificate refuses these.
    const Certificate certificate = certify(pool, cascade, streaming);
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

bool has_extremum(Expr body) {
  bool found = false;
  visit(body, [&](Expr e) { found |= e->op == ExprOp::Max || e->op == ExprOp::Min; });
  return found;
}

// A maximum may have a finite rank that needs signs or bounds to see: max(x·a, x·b), max(e^x, x).
TEST(RandomCascades, SumsAreAcceptedWhereTheyHaveFiniteRank) {
  int accepted = 0, refused = 0, missed = 0;
  for (int number = 0; number < kCascades; ++number) {
    ExprPool pool;
    const Cascade drawn = Generator(pool, kSeed + static_cast<uint64_t>(number)).cascade();
    const Cascade cascade = centre_moments(pool, drawn);
    for (size_t i = 0; i < cascade.stages.size(); ++i) {
      const Stage& stage = cascade.stages[i];
      const StageScope scope{pool, cascade.stream, cascade.stages, {}};
      if (stage.reduction != Reduction::Sum || !scope.mixed(stage.body)) continue;
      SCOPED_TRACE(fmt::format("cascade {}, stage {}: {}", number, i, to_string(pool, stage.body)));
      const auto decomposed = decompose(scope, stage.body);
      Matrix matrix = sampled_matrix(scope, stage.body, -3);
      if (matrix.empty()) matrix = sampled_matrix(scope, stage.body, 0.5);
      if (matrix.empty()) continue;
      const int rank = numeric_rank(std::move(matrix));
      if (auto* terms = std::get_if<std::vector<Term>>(&decomposed)) {
        ++accepted;
        EXPECT_LE(rank, static_cast<int>(terms->size()));
      } else {
        ++refused;
        const std::string& reason = std::get<Refusal>(decomposed).reason;
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
