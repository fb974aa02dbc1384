#include "codegen/maps/tiled_map.h"

#include <algorithm>
#include <cmath>

#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr int kWarpLines = 32;            // of a tile that a warp computes
constexpr int kGroups = 8, kAcross = 32;  // of a tile: groups along, at least so many columns
constexpr int kSharedBytes = 48 * 1024;   // of a block, without asking for more

// The stride of an offset along an axis; null where it is not affine, or its stride has axes.
ir::Expr stride_along(ir::ExprPool& pool, ir::Expr offset, ir::Expr axis) {
  const auto affine = affine_in(pool, offset, axis);
  return affine && is_size(affine->stride) ? affine->stride : nullptr;
}

// Whether tiles turn it: consecutive elements are points across, and points along are lines.
bool turns(ir::ExprPool& pool, ir::Expr read, ir::Expr along, ir::Expr across) {
  const ir::Expr lines = stride_along(pool, read->args[0], along),
                 columns = stride_along(pool, read->args[0], across);
  return lines && columns && columns->is_constant(1) && !lines->is_constant(0) &&
         !lines->is_constant(1);
}

bool has(const std::vector<ir::Expr>& axes, ir::Expr axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// The axes that are one line of elements at all offsets, up to `inner`, which has adjacent ones:
// the stride of each is the number of elements of those after it. Few points, of a tile's `side`,
// are joined by those of other axes than `taken`.
std::vector<ir::Expr> joined(ir::ExprPool& pool, const std::vector<ir::Expr>& offsets,
                             const MapShape& shape, ir::Expr inner,
                             const std::vector<ir::Expr>& taken, int side) {
  constexpr int kMany = 16;  // sides, of which the last one may be part
  std::vector<ir::Expr> axes = {inner};
  ir::Expr elements = inner->extent();
  const auto few = [&] {
    return elements->is_constant() && elements->integer % side != 0 &&
           elements->integer < kMany * side;
  };
  const auto follows = [&](ir::Expr axis) {
    if (has(axes, axis) || has(taken, axis)) return false;
    return std::all_of(offsets.begin(), offsets.end(), [&](ir::Expr offset) {
      return stride_along(pool, offset, axis) == elements;
    });
  };
  while (few()) {
    const auto next = std::find_if(shape.axes.begin(), shape.axes.end(), follows);
    if (next == shape.axes.end()) break;
    axes.insert(axes.begin(), *next);
    elements = pool.mul(elements, (*next)->extent());
  }
  return axes;
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

}  // namespace

// Lines are padded (OperandTile).
int TiledMap::shared_bytes() const {
  constexpr int kAlignment = 16;
  int bytes = 0;
  for (ir::Expr read : reads) {
    const int element = static_cast<int>(size_of(read->dtype));
    const int tile = along_side * (across_side * element + (element > 4 ? 8 : 4));
    bytes += (tile + kAlignment - 1) / kAlignment * kAlignment;
  }
  return bytes;
}

std::vector<ir::Expr> TiledMap::lines() const {
  std::vector<ir::Expr> others;
  for (ir::Expr axis : shape.axes) {
    if (!has(along, axis) && !has(across, axis)) others.push_back(axis);
  }
  return others;
}

ir::Expr TiledMap::points_along(ir::ExprPool& pool) const {
  return product_of(pool, extents_of(pool, along));
}

ir::Expr TiledMap::points_across(ir::ExprPool& pool) const {
  return product_of(pool, extents_of(pool, across));
}

void TiledMap::set_sides(const KernelText& kernel) {
  constexpr int kIdle = 4;  // the share of points along that a tile may be idle for
  ir::ExprPool& pool = kernel.pool();
  width = vector_width(kernel, shape);
  columns = columns_of(reads);
  along_side = kGroups * width;
  std::vector<ir::Expr> stored, read;
  for (const Store& store : shape.stores) stored.push_back(store.offset);
  for (ir::Expr each : reads) read.push_back(each->args[0]);
  along = joined(pool, stored, shape, along.back(), across, along_side);
  const ir::Expr points = points_along(pool);
  const auto idle = [&](int side) { return side - 1 - (points->integer + side - 1) % side; };
  while (points->is_constant() && along_side > kWarpLines &&
         idle(along_side) > points->integer / kIdle) {
    along_side /= 2;
  }
  const int unit = kWarpLines * width * columns;  // points of a warp
  across_side = std::max(kAcross, kTiledThreads / 32 * unit / along_side);
  across = joined(pool, read, shape, across.back(), along, across_side);
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
  const std::vector<ir::Expr> reads = reads_of(shape.stores);
  TiledMap best{std::move(shape), {along}, {}, {}, 0, 0, 0, 0};
  for (size_t i = 0; i + 1 < best.shape.axes.size(); ++i) {
    const ir::Expr across = best.shape.axes[i];
    std::vector<ir::Expr> turned;
    for (ir::Expr read : reads) {
      if (turns(pool, read, along, across)) turned.push_back(read);
    }
    if (bytes_of(turned) <= bytes_of(best.reads)) continue;
    best.across = {across};
    best.reads = turned;
  }
  if (best.across.empty()) return "no operand lies along another axis than the results";
  best.set_sides(kernel);
  if (best.shared_bytes() > kSharedBytes) return "its tiles exceed shared memory";
  return best;
}

// The reads that tiles turn cost what they would along the results.
double TiledMap::time(const StepBuilder& builder, const KnownSizes& sizes) const {
  constexpr double kTurn = 0.5;  // µs: the tile's loads are behind a barrier
  ir::ExprPool& pool = builder.pool();
  const ir::Expr inner = shape.axes.back();
  std::vector<std::pair<ir::Expr, ir::Expr>> turned;
  for (ir::Expr read : reads) {
    const ir::Expr offset =
        pool.substitute(read->args[0], {{inner, across.back()}, {across.back(), inner}});
    turned.emplace_back(read, pool.read(read->integer, read->dtype, {offset}));
  }
  MapBody body;
  body.shape = shape;
  for (Store& store : body.shape.stores) store.body = pool.substitute(store.body, turned);
  const auto filled = [&](ir::Expr extent, double side) {
    const auto count = static_cast<double>(std::max<int64_t>(sizes.of(extent), 1));
    return std::ceil(count / side) * side / count;
  };
  select::Work work = body.work(builder, sizes);
  const double idle =
      filled(points_along(pool), along_side) * filled(points_across(pool), across_side);
  work.accesses *= idle;
  work.scalars *= idle;
  work.blocks = work.points * idle / (along_side * across_side);
  return select::time_of(work, builder.target) + kTurn;
}

}  // namespace redfuser::codegen
