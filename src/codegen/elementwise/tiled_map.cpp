#include "codegen/elementwise/tiled_map.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr int kWarpLines = 32;            // of a tile that a warp computes
constexpr int kGroups = 8, kAcross = 32;  // of a tile: groups along, at least so many columns
constexpr int kSharedBytes = 48 * 1024;   // of a block, without asking for more

// The stride of a read along an axis; null where it is not affine, or its stride has axes.
ir::Expr stride_along(ir::ExprPool& pool, ir::Expr read, ir::Expr axis) {
  const auto affine = affine_in(pool, read->args[0], axis);
  return affine && is_size(affine->stride) ? affine->stride : nullptr;
}

// Whether tiles turn it: consecutive elements are points across, and points along are lines.
bool turns(ir::ExprPool& pool, ir::Expr read, ir::Expr along, ir::Expr across) {
  const ir::Expr lines = stride_along(pool, read, along),
                 columns = stride_along(pool, read, across);
  return lines && columns && columns->is_constant(1) && !lines->is_constant(0) &&
         !lines->is_constant(1);
}

std::vector<ir::Expr> reads_of(const MapShape& shape) {
  std::vector<ir::Expr> reads;
  std::set<ir::Expr> seen;
  for (const Store& store : shape.stores) {
    visit(store.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0 && seen.insert(e).second) reads.push_back(e);
    });
  }
  return reads;
}

int bytes_of(const std::vector<ir::Expr>& reads) {
  int bytes = 0;
  for (ir::Expr read : reads) bytes += static_cast<int>(size_of(read->dtype));
  return bytes;
}

// Adjacent elements of the smallest operand in a word.
int columns_of(const std::vector<ir::Expr>& reads) {
  size_t smallest = 4;
  for (ir::Expr read : reads) smallest = std::min(smallest, size_of(read->dtype));
  return static_cast<int>(4 / smallest);
}

// Of the operands' tiles, whose lines are padded (OperandTile).
int shared_bytes(const TiledMap& map) {
  int bytes = 0;
  for (ir::Expr read : map.reads) {
    const int element = static_cast<int>(size_of(read->dtype));
    bytes += map.along_side * (map.across_side * element + (element > 4 ? 8 : 4));
  }
  return bytes;
}

}  // namespace

std::vector<ir::Expr> TiledMap::lines() const {
  std::vector<ir::Expr> others;
  for (ir::Expr axis : shape.axes) {
    if (axis != across && axis != shape.axes.back()) others.push_back(axis);
  }
  return others;
}

std::variant<TiledMap, std::string> tiled_map(const KernelText& kernel, MapShape shape) {
  ir::ExprPool& pool = kernel.pool();
  if (has_reduce(shape.stores)) return "a point reduces elements";
  if (shape.axes.size() < 2) return "its points are one line";
  const ir::Expr along = shape.axes.back();
  for (const Store& store : shape.stores) {
    const auto affine = affine_in(pool, store.offset, along);
    if (!affine || !affine->stride->is_constant(1)) return "its results are not adjacent";
  }
  const std::vector<ir::Expr> reads = reads_of(shape);
  TiledMap best{std::move(shape), nullptr, {}, 0, 0, 0, 0};
  for (size_t i = 0; i + 1 < best.shape.axes.size(); ++i) {
    const ir::Expr across = best.shape.axes[i];
    std::vector<ir::Expr> turned;
    for (ir::Expr read : reads) {
      if (turns(pool, read, along, across)) turned.push_back(read);
    }
    if (bytes_of(turned) <= bytes_of(best.reads)) continue;
    best.across = across;
    best.reads = turned;
  }
  if (!best.across) return "no operand lies along another axis than the results";
  best.width = vector_width(kernel, best.shape);
  best.columns = columns_of(best.reads);
  best.along_side = kGroups * best.width;
  const int unit = kWarpLines * best.width * best.columns;  // points of a warp
  best.across_side = std::max(kAcross, kTiledThreads / 32 * unit / best.along_side);
  if (shared_bytes(best) > kSharedBytes) return "its tiles exceed shared memory";
  return best;
}

// The reads that tiles turn cost what they would along the results.
double TiledMap::time(const StepBuilder& builder, const KnownSizes& sizes) const {
  constexpr double kTurn = 0.5;  // µs: the tile's loads are behind a barrier
  ir::ExprPool& pool = builder.pool();
  const ir::Expr inner = shape.axes.back();
  std::vector<std::pair<ir::Expr, ir::Expr>> turned;
  for (ir::Expr read : reads) {
    const ir::Expr offset = pool.substitute(read->args[0], {{inner, across}, {across, inner}});
    turned.emplace_back(read, pool.read(read->integer, read->dtype, {offset}));
  }
  MapBody body;
  body.shape = shape;
  for (Store& store : body.shape.stores) store.body = pool.substitute(store.body, turned);
  const auto filled = [&](ir::Expr axis, double side) {
    const auto count = static_cast<double>(std::max<int64_t>(sizes.of(axis->extent()), 1));
    return std::ceil(count / side) * side / count;
  };
  select::Work work = body.work(builder, sizes);
  const double idle = filled(inner, along_side) * filled(across, across_side);
  work.accesses *= idle;
  work.scalars *= idle;
  return select::time_of(work, builder.target) + kTurn;
}

}  // namespace redfuser::codegen
