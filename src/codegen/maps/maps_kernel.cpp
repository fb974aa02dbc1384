#include "codegen/maps/maps_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kMostBlocks = int64_t{1} << 30;

}  // namespace

MapsKernel maps_kernel(StepBuilder& builder, const std::vector<const fuse::MapStep*>& steps) {
  ir::ExprPool& pool = builder.pool();
  MapThreads threads;
  threads.share = "blocks";
  const ir::Expr most = pool.integer(kMostBlocks / static_cast<int64_t>(steps.size()));
  KernelText kernel = builder.kernel();
  MapsKernel result;
  std::string equations = "maps\n", text = "map_parts(0";
  ir::Expr first = pool.integer(0);
  for (const fuse::MapStep* step : steps) {
    MapStores map = stores_of(builder, *step);
    equations += map.equations;
    const MapShape shape = simplified(pool, std::move(map.shape));
    result.forms.push_back(map_forms(builder, shape));
    result.parts.push_back(map_body(kernel, shape, threads));
    MapBody& part = result.parts.back();
    part.blocks = pool.make(ir::ExprOp::Min, {part.blocks, most});
    if (result.parts.size() > 1) text += ", " + kernel.size(first);
    text += fmt::format(", [&](const MapBlocks& blocks) {{\n{}}}", part.text);
    first = pool.add(first, part.blocks);
  }
  result.launch =
      kernel.launch(kMapsFamily, equations, {kMapHeader}, "", text + ");\n", kMapThreads);
  result.launch.grid[0] = first;
  result.launch.config = {{"parts", static_cast<int>(steps.size())}};
  return result;
}

int MapsKernel::registers() const {
  int most = 0;
  for (const MapBody& part : parts) most = std::max(most, part.registers);
  return most;
}

double MapsKernel::time(const StepBuilder& builder, const KnownSizes& sizes) const {
  const double resident = resident_threads(registers());
  double longest = 0;
  select::Work all;
  for (const MapBody& part : parts) {
    const select::Work work = part.work(builder, sizes);
    longest = std::max(longest, select::time_of(work, builder.target, part.lanes, resident));
    all.bytes += work.bytes;
    all.accesses += work.accesses;
    all.scalars += work.scalars;
    all.specials += work.specials;
    all.points += work.points * part.lanes;
    all.blocks += work.blocks;
    all.steps = std::max(all.steps, work.steps / part.lanes);
  }
  return std::max(longest, select::time_of(all, builder.target, 1, resident));
}

double MapsKernel::time_apart(const StepBuilder& builder, const KnownSizes& sizes) const {
  double time = 0;
  for (const std::vector<MapForm>& part : forms) {
    time += part[least_form(part, builder, sizes)].time(builder, sizes);
  }
  return time;
}

}  // namespace redfuser::codegen
