#include "codegen/elementwise/elementwise_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "codegen/elementwise/map_body.h"

namespace redfuser::codegen {

void bind_coordinates(Emitter& emitter, const std::vector<ir::Expr>& axes, const std::string& index,
                      bool small) {
  std::string rest = index;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i]->op != ir::ExprOp::Axis) continue;
    const bool last = std::all_of(axes.begin(), axes.begin() + static_cast<long>(i),
                                  [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
    if (last) {
      emitter.bind(axes[i], rest);
      return;
    }
    const std::string quotient = emitter.fresh("q"), name = emitter.fresh("c");
    const std::string extent = emitter.kernel().size(axes[i]->extent());
    const std::string inside = small ? fmt::format("small_remainder({}, {})", rest, extent)
                                     : fmt::format("{} - {} * {}", rest, quotient, extent);
    emitter.line(fmt::format("const long long {} = {}({}, {}), {} = {};", quotient,
                             small ? "small_quotient" : "floor_div", rest, extent, name, inside));
    emitter.bind(axes[i], name);
    rest = quotient;
  }
}

bool has_small_index(ir::ExprPool& pool, const std::vector<ir::Expr>& axes) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  ir::Expr points = product_of(pool, extents_of(pool, axes));
  return points->is_constant() && points->integer <= kMost;
}

void add_map(StepBuilder& builder, const std::string& name, std::vector<ir::Expr> axes,
             std::vector<Store> stores, const std::string& comment, ir::Expr when) {
  constexpr int64_t kMaxBlocks = int64_t{1} << 30;
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const MapBody body = map_body(kernel, simplified(pool, {std::move(axes), std::move(stores)}));
  KernelLaunch launch = kernel.launch(name, comment, {kMapHeader}, "", body.text, kMapThreads);
  launch.grid[0] = pool.make(ir::ExprOp::Min, {body.blocks, pool.integer(kMaxBlocks)});
  if (when) launch.grid[0] = pool.select(when, launch.grid[0], pool.integer(0));
  launch.time = body.time(builder, builder.sizes);
  builder.result.calls.push_back(std::move(launch));
}

// The step at the positions from `begin` on.
static fuse::MapStep appended(ir::ExprPool& pool, const fuse::MapStep& step,
                              const fuse::Append& append) {
  fuse::MapStep result = step;
  const ir::Expr axis = step.axes[append.axis];
  const ir::Expr position = pool.axis("p", pool.sub(axis->extent(), append.begin));
  const std::vector<std::pair<ir::Expr, ir::Expr>> moved = {
      {axis, pool.add(append.begin, position)}};
  result.axes[append.axis] = position;
  for (fuse::MapStep::Output& output : result.outputs) {
    output.body = pool.substitute(output.body, moved);
  }
  return result;
}

MapStores stores_of(StepBuilder& builder, const fuse::MapStep& step) {
  return stores_of(builder, step, {});
}

MapStores stores_of(StepBuilder& builder, const fuse::MapStep& given,
                    const std::vector<MapPlace>& places) {
  ir::ExprPool& pool = builder.pool();
  const ir::ValueId first = given.outputs.front().value;
  const fuse::Append* append = builder.target.append_of(first);
  const fuse::MapStep step = append == nullptr ? given : appended(pool, given, *append);
  std::vector<std::pair<ir::Expr, ir::Expr>> moved;
  for (const MapPlace& each : places) moved.emplace_back(each.axis, each.place);
  MapStores result;
  for (ir::Expr axis : builder.memory_axes(first, step.axes)) {
    const auto found = std::find_if(places.begin(), places.end(),
                                    [&](const MapPlace& each) { return each.axis == axis; });
    ir::Expr loop = found == places.end() ? axis : found->loop;
    if (loop) result.shape.axes.push_back(loop);
  }
  for (const fuse::MapStep::Output& output : step.outputs) {
    std::vector<ir::Expr> point = step.axes;
    if (append != nullptr) point[append->axis] = pool.add(append->begin, point[append->axis]);
    for (ir::Expr& index : point) index = pool.substitute(index, moved);
    result.shape.stores.push_back({output.value,
                                   builder.flat.flat(pool.substitute(output.body, moved)),
                                   builder.offset_of(output.value, point)});
    result.equations += fmt::format("%{} = {}\n", output.value, to_string(pool, output.body));
  }
  return result;
}

}  // namespace redfuser::codegen
