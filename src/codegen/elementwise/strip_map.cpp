#include "codegen/elementwise/strip_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "codegen/elementwise/elementwise_kernel.h"
#include "select/instructions.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kLongest = 16, kShortest = 4;  // points of a strip
constexpr int kUnrolled = 4;                     // whose loads a thread has under way at once

// The largest parts of the stores, within offsets too, that do not depend on the axis but on other
// axes or elements.
std::vector<ir::Expr> shared_parts(const MapShape& shape, ir::Expr axis) {
  std::vector<ir::Expr> parts;
  std::set<ir::Expr> seen;
  const auto varies = [&](ir::Expr e) {
    return e->has_read || std::any_of(shape.axes.begin(), shape.axes.end(),
                                      [&](ir::Expr each) { return e->depends_on(each); });
  };
  const std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || e->is_constant() || e->op == ir::ExprOp::Axis) return;
    if (!e->depends_on(axis)) {
      if (varies(e)) parts.push_back(e);
      return;
    }
    for (ir::Expr arg : e->args) go(arg);
  };
  for (const Store& store : shape.stores) {
    go(store.body);
    go(store.offset);
  }
  return parts;
}

double instructions_of(const select::Work& work) {
  return work.scalars + select::kCostlyInstructions * work.specials;
}

// The greatest divisor of the axis' extent that is the length of a strip; 0: none.
int64_t strip_of(ir::Expr axis) {
  if (!axis->extent()->is_constant()) return 0;
  for (int64_t points = std::min(kLongest, axis->extent()->integer); points >= kShortest;
       --points) {
    if (axis->extent()->integer % points == 0) return points;
  }
  return 0;
}

}  // namespace

std::variant<StripMap, std::string> strip_map(const KernelText&, MapShape shape) {
  if (has_reduce(shape.stores)) return "a point reduces elements";
  if (shape.axes.size() < 2) return "its points are one line";
  StripMap best;
  double most = 0;
  for (size_t i = 0; i + 1 < shape.axes.size(); ++i) {
    const ir::Expr axis = shape.axes[i];
    const int64_t points = strip_of(axis);
    if (points == 0) continue;
    std::vector<ir::Expr> parts = shared_parts(shape, axis);
    const double saved = instructions_of(select::work_of(parts, shape.axes, KnownSizes::all(64)));
    if (saved <= most) continue;
    most = saved;
    best.axis = axis;
    best.points = points;
    best.shared = std::move(parts);
  }
  if (best.axis == nullptr) return "its points share nothing along another axis";
  best.shape = std::move(shape);
  return best;
}

double StripMap::time(const StepBuilder& builder, const KnownSizes& sizes) const {
  MapBody body;
  body.shape = shape;
  select::Work work = body.work(builder, sizes);
  const select::Work common = select::work_of(shared, shape.axes, sizes);
  const double saved = 1 - 1 / static_cast<double>(points);
  work.scalars = std::max(work.scalars - saved * common.scalars, 0.0);
  work.specials = std::max(work.specials - saved * common.specials, 0.0);
  work.accesses = std::max(work.accesses - saved * common.accesses, 0.0);
  work.points /= static_cast<double>(points);
  work.blocks = work.points / kMapThreads;
  return select::time_of(work, builder.target);
}

void StripMap::add(StepBuilder& builder, const std::string& equations, ir::Expr when) const {
  constexpr int64_t kMaxBlocks = int64_t{1} << 30;
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const ir::Expr strip = pool.axis("strip", pool.integer(axis->extent()->integer / points)),
                 place = pool.axis("place", pool.integer(points));
  const std::vector<std::pair<ir::Expr, ir::Expr>> split = {
      {axis, pool.add(pool.mul(strip, pool.integer(points)), place)}};
  std::vector<ir::Expr> axes = shape.axes;
  std::replace(axes.begin(), axes.end(), axis, strip);
  const bool small = has_small_index(pool, axes);

  Emitter emitter(kernel);
  emitter.set_fast_math(rounds_to_16_bits(kernel, shape));
  emitter.open();
  bind_coordinates(emitter, axes, "point", small);
  emitter.open();
  emitter.bind(place, "place");
  for (const Store& store : shape.stores) {
    const ir::Expr body = pool.substitute(store.body, split),
                   offset = pool.substitute(store.offset, split);
    const std::string value = emitter.emit_as(body, kernel.dtype_of(store.value));
    emitter.line(fmt::format("store({}, {}, {});", kernel.buffer(store.value, true),
                             emitter.emit(offset), value));
  }
  const std::string each = emitter.close();
  emitter.line(fmt::format("#pragma unroll {}\nfor (int place = 0; place < {}; ++place) {{\n{}}}",
                           kUnrolled, points, each));
  const std::string compute = emitter.close();
  const ir::Expr count = product_of(pool, extents_of(pool, axes));
  emitter.line(
      fmt::format("map_points<MapConfig<1, 1, {}{}>>(all_blocks(), {}, [&](long long "
                  "point) {{\n{}}});",
                  kMapThreads, small ? ", true" : "", kernel.size(count), compute));

  KernelLaunch launch = kernel.launch(kStripMapFamily, "strip map\n" + equations, {kMapHeader}, "",
                                      emitter.close(), kMapThreads);
  const ir::Expr blocks =
      pool.make(ir::ExprOp::Min, {ceil_div(pool, count, kMapThreads), pool.integer(kMaxBlocks)});
  launch.grid[0] = pool.select(when, blocks, pool.integer(0));
  launch.time = time(builder, builder.sizes);
  builder.result.calls.push_back(std::move(launch));
}

}  // namespace redfuser::codegen
