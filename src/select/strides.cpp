#include "select/strides.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ir/evaluate.h"
#include "ir/polynomial.h"

namespace redfuser::select {
namespace {

constexpr int64_t kWarp = 32;

constexpr int64_t kNominal = 128;  // of a size that is not known

int64_t size_of_axis(ir::Expr axis, const KnownSizes& sizes) {
  const int64_t size = axis->extent()->has_read ? kNominal : sizes.of(axis->extent());
  return size < 0 ? kNominal : std::max<int64_t>(size, 1);
}

// With the axes at these places; others are a third of the way along.
using Places = std::map<ir::Expr, int64_t>;
double evaluated(ir::Expr offset, const Places& places, const KnownSizes& sizes) {
  constexpr int64_t kPart = 3;
  return ir::evaluate(offset, [&](ir::Expr leaf) -> double {
    const auto found = places.find(leaf);
    if (found != places.end()) return static_cast<double>(found->second);
    if (leaf->op == ir::ExprOp::Axis) return static_cast<double>(size_of_axis(leaf, sizes) / kPart);
    const int64_t size = sizes.of(leaf);
    return static_cast<double>(size < 0 ? kNominal : size);
  });
}

bool decided_by_indices(ir::Expr offset) {
  bool decided = !offset->has_read && !offset->has_leaf;
  ir::visit(offset, [&](ir::Expr e) { decided &= e->op != ir::ExprOp::Reduce; });
  return decided;
}

}  // namespace

std::optional<double> stride_along(ir::Expr offset, ir::Expr axis, const KnownSizes& sizes) {
  if (!offset->depends_on(axis)) return 0;
  double stride = 0;
  bool linear = true;
  for (const auto& [monomial, coefficient] : ir::to_polynomial(offset)) {
    const auto holds = [&](ir::Expr factor) { return factor->depends_on(axis); };
    if (std::none_of(monomial.begin(), monomial.end(), holds)) continue;
    linear &= monomial.size() == 1 && monomial[0] == axis;
    stride += static_cast<double>(coefficient);
  }
  if (linear) return stride;
  if (!decided_by_indices(offset)) return std::nullopt;
  const int64_t extent = size_of_axis(axis, sizes), span = std::min(kWarp, extent - 1);
  if (span == 0) return 0;
  const int64_t first = (extent - span) / 2;
  const double difference =
      evaluated(offset, {{axis, first + span}}, sizes) - evaluated(offset, {{axis, first}}, sizes);
  return difference / static_cast<double>(span);
}

std::optional<Span> span_over(ir::Expr offset, const std::vector<ir::Expr>& axes,
                              const KnownSizes& sizes) {
  if (!decided_by_indices(offset)) return std::nullopt;
  Places places;
  for (ir::Expr axis : axes) places[axis] = 0;
  const double origin = evaluated(offset, places, sizes);
  Span result{origin, origin};
  for (ir::Expr axis : axes) {
    if (!offset->depends_on(axis)) continue;
    places[axis] = size_of_axis(axis, sizes) - 1;
    const double moved = evaluated(offset, places, sizes) - origin;
    places[axis] = 0;
    (moved < 0 ? result.first : result.last) += moved;
  }
  return result;
}

double load_cycles(std::optional<double> stride, double bytes) {
  // Lines of which the cache finds so many in a cycle; where data decide, lanes meet by chance.
  constexpr double kLine = 128, kLinesOfCycle = 3, kByChance = 8;
  constexpr int64_t kWord = 4;
  if (!stride) return kByChance;
  const double apart = std::abs(*stride) * bytes;
  const double lines = std::min<double>(kWarp, apart * kWarp / kLine);
  const auto step = static_cast<int64_t>(apart);
  const bool whole = apart == static_cast<double>(step) && step % kWord == 0 && step > 0;
  const int64_t meet = whole ? std::gcd(step / kWord, kWarp) : 1;
  return std::max({1.0, static_cast<double>(meet), lines / kLinesOfCycle});
}

}  // namespace redfuser::select
