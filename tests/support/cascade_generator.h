// Random cascades, and the comparison of their streaming forms with them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "cascade/cascade.h"
#include "cascade/certify/simulate.h"

namespace redfuser {

constexpr int64_t kRowValue = 9;  // the input that is read without the streamed axis

// Draws a cascade whose bodies range from products to anything.
class CascadeGenerator {
 public:
  // `draw` gives any number.
  CascadeGenerator(ir::ExprPool& pool, std::function<uint64_t()> draw)
      : pool_(pool), draw_(std::move(draw)) {}

  cascade::Cascade cascade() {
    row_ = pool_.axis("i", pool_.symbol("rows"));
    stream_ = pool_.axis("j", pool_.symbol("n"));
    cascade_.rows = {row_};
    cascade_.stream = stream_;
    const int stages = 2 + below(4);
    for (int i = 0; i < stages; ++i) add_stage();
    for (int i = 0; i < stages; ++i) {
      cascade_.outputs.push_back({static_cast<ir::ValueId>(i), leaf(i), {}, false});
    }
    cascade_.outputs.push_back({static_cast<ir::ValueId>(stages), mixed(1), {}, true});
    return cascade_;
  }

 private:
  int below(int n) { return static_cast<int>(draw_() % static_cast<uint64_t>(n)); }
  ir::Expr make(ir::ExprOp op, ir::Expr a) { return pool_.make(op, {a}); }
  ir::Expr make(ir::ExprOp op, ir::Expr a, ir::Expr b) { return pool_.make(op, {a, b}); }
  ir::Expr number(double value) { return pool_.number(value, DType::Float32); }
  ir::Expr constant() { return number((below(15) + 2) / 8.0 * (below(3) ? 1 : -1)); }
  ir::Expr leaf(int stage) { return pool_.leaf(ir::LeafKind::Result, stage, DType::Float32); }
  ir::Expr input() { return pool_.read(below(2), DType::Float32, {row_, stream_}); }

  void add_stage() {
    cascade::Stage stage;
    const int kind = below(10);
    stage.reduction = kind < 6    ? ir::Reduction::Sum
                      : kind == 6 ? ir::Reduction::Prod
                      : kind == 7 ? ir::Reduction::Min
                                  : ir::Reduction::Max;
    const bool first = cascade_.stages.empty();
    if (first && below(2)) stage.reduction = ir::Reduction::Max;
    stage.body = first ? streamed(2) : mixed(2);
    stage.dtype = DType::Float32;
    cascade_.stages.push_back(stage);
  }

  // Of the streamed element alone.
  ir::Expr streamed(int depth) {
    if (depth == 0) return below(6) ? input() : constant();
    switch (below(10)) {
      case 0:
        return pool_.add(streamed(depth - 1), streamed(depth - 1));
      case 1:
        return difference(streamed(depth - 1), streamed(depth - 1));
      case 2:
        return pool_.mul(streamed(depth - 1), streamed(depth - 1));
      case 3:
        return make(ir::ExprOp::Exp, streamed(depth - 1));
      case 4:
        return make(ir::ExprOp::Tanh, streamed(depth - 1));
      case 5:
        return make(ir::ExprOp::Abs, streamed(depth - 1));
      case 6:
        return pool_.select(condition(), streamed(depth - 1), streamed(depth - 1));
      default:
        return input();
    }
  }

  ir::Expr condition() { return make(ir::ExprOp::Less, input(), constant()); }

  ir::Expr any_result() { return leaf(below(static_cast<int>(cascade_.stages.size()))); }

  // Never e - e, which makes all that follows infinite or zero.
  ir::Expr difference(ir::Expr a, ir::Expr b) { return pool_.sub(a, a == b ? constant() : b); }

  // Of earlier results (and of values of the row) alone.
  ir::Expr results(int depth) {
    if (depth == 0) {
      if (!below(8)) return pool_.read(kRowValue, DType::Float32, {row_});
      return any_result();
    }
    switch (below(9)) {
      case 0:
        return pool_.add(results(depth - 1), constant());
      case 1:
        return pool_.mul(results(depth - 1), constant());
      case 2:
        return make(ir::ExprOp::Log,
                    pool_.add(make(ir::ExprOp::Abs, results(depth - 1)), number(1)));
      case 3:
        return make(ir::ExprOp::Sqrt,
                    pool_.add(make(ir::ExprOp::Abs, results(depth - 1)), number(0.5)));
      case 4:
        return pool_.div(results(depth - 1), pool_.cast(DType::Float32, stream_->extent()));
      case 5:
        return make(ir::ExprOp::Reciprocal,
                    pool_.add(make(ir::ExprOp::Abs, results(depth - 1)), number(1)));
      case 6:
        return difference(any_result(), any_result());
      default:
        return results(0);
    }
  }

  ir::Expr mixed(int depth) {
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
        return make(ir::ExprOp::Exp, pool_.sub(streamed(1), results(1)));
      case 5:
        return make(ir::ExprOp::Pow, pool_.sub(streamed(0), results(0)), number(2 + below(2)));
      case 6:
        return pool_.add(mixed(depth - 1), mixed(depth - 1));
      case 7:
        return pool_.mul(mixed(depth - 1), mixed(depth - 1));
      case 8:
        return pool_.select(condition(), mixed(depth - 1), mixed(depth - 1));
      case 9:
        return pool_.select(make(ir::ExprOp::Less, any_result(), constant()), mixed(depth - 1),
                            mixed(depth - 1));
      case 10:
        return make(below(2) ? ir::ExprOp::Max : ir::ExprOp::Min, mixed(depth - 1),
                    mixed(depth - 1));
      case 11: {
        constexpr ir::ExprOp kUnary[] = {ir::ExprOp::Exp, ir::ExprOp::Log,  ir::ExprOp::Tanh,
                                         ir::ExprOp::Abs, ir::ExprOp::Sqrt, ir::ExprOp::Neg};
        return make(kUnary[below(6)], mixed(depth - 1));
      }
      case 12:
        return pool_.div(mixed(depth - 1), mixed(depth - 1));
      default:
        return pool_.cast(DType::Float32, pool_.cast(DType::Float16, mixed(depth - 1)));
    }
  }

  ir::ExprPool& pool_;
  std::function<uint64_t()> draw_;
  cascade::Cascade cascade_;
  ir::Expr row_ = nullptr, stream_ = nullptr;
};

// Moderate values of either sign, a quarter of them negative, so that logarithms are often defined.
inline double moderate(uint64_t a, uint64_t b) {
  std::mt19937_64 random(a * 1000003 + b * 7919 + 5);
  random.discard(2);
  const double value = std::uniform_real_distribution<double>(0.25, 1.75)(random);
  return random() % 4 ? value : -value;
}

inline cascade::Row row_of(int64_t length, uint64_t seed) {
  cascade::Row row;
  row.length = length;
  auto drawn = std::make_shared<std::map<std::pair<int64_t, int64_t>, double>>();
  row.values = [=](ir::Expr e) -> double {
    if (e->op == ir::ExprOp::Symbol) return static_cast<double>(length);
    if (e->op == ir::ExprOp::Axis) return 0;
    const int64_t index = e->args.back()->integer;
    const auto [value, first] = drawn->try_emplace({e->integer, index});
    if (first) {
      value->second =
          moderate(seed + static_cast<uint64_t>(e->integer) * 97, static_cast<uint64_t>(index));
    }
    return value->second;
  };
  return row;
}

// All ways to cut [0, length) into segments, and one with empty segments.
inline std::vector<std::vector<int64_t>> segmentations(int64_t length) {
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
  double share = 0;     // of the larger value, or of 1
};

inline std::optional<Mismatch> mismatch(const cascade::RowResult& actual,
                                        const cascade::RowResult& expected, double tolerance) {
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    for (size_t i = 0; i < expected.outputs[o].size(); ++i) {
      const double a = actual.outputs[o][i], e = expected.outputs[o][i];
      if (a == e || (std::isnan(a) && std::isnan(e))) continue;
      const double size = std::max({1.0, std::abs(a), std::abs(e)});
      if (std::abs(a - e) <= tolerance * size) continue;
      return Mismatch{fmt::format("output {} at {}: {} for {}", o, i, a, e),
                      std::isfinite(a) && std::isfinite(e), std::abs(a - e) / size};
    }
  }
  return std::nullopt;
}

// Whether values that differ in their last bits alone lead the cascade itself as far astray, by
// `share`: no two ways to compute it agree there. The changes are at most 1e-11 of a value.
inline bool ill_conditioned(ir::ExprPool& pool, const cascade::Cascade& cascade,
                            const cascade::Row& row, const cascade::RowResult& expected,
                            double share) {
  for (int change = 1; change <= 16; ++change) {
    cascade::Row moved = row;
    moved.values = [&, change](ir::Expr e) -> double {
      const double value = row.values(e);
      if (e->op == ir::ExprOp::Symbol || e->op == ir::ExprOp::Axis) return value;
      const int64_t sign = (e->integer * 31 + e->args.back()->integer * 7 + change) % 3 - 1;
      return value * (1 + static_cast<double>(sign * change) * 6e-13);
    };
    if (mismatch(run_unfused(pool, cascade, moved), expected, share / 4)) return true;
  }
  return false;
}

// The first difference over all segmentations and tile sizes of rows of these lengths, where the
// cascade is well conditioned.
inline std::optional<Mismatch> mismatch(ir::ExprPool& pool, const cascade::Cascade& cascade,
                                        const cascade::Streaming& streaming, uint64_t seed,
                                        double tolerance = 1e-8,
                                        const std::vector<int64_t>& lengths = {1, 2, 3, 4, 6}) {
  for (const int64_t length : lengths) {
    const cascade::Row row = row_of(length, seed);
    const cascade::RowResult expected = run_unfused(pool, cascade, row);
    for (const auto& bounds : segmentations(length)) {
      for (int64_t tile = 1; tile <= 3; ++tile) {
        auto found =
            mismatch(run_streaming(pool, streaming, row, bounds, tile), expected, tolerance);
        if (!found) continue;
        if (found->finite && ill_conditioned(pool, cascade, row, expected, found->share)) continue;
        found->text +=
            fmt::format(" ({} elements, {} segments, tile {})", length, bounds.size() - 1, tile);
        return found;
      }
    }
  }
  return std::nullopt;
}

}  // namespace redfuser
