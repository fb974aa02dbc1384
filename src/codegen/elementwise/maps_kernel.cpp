#include "codegen/elementwise/maps_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kMostBlocks = int64_t{1} << 30;

// The part of the blocks from `first` to the one before `end`; the last part has the rest.
std::string part_text(KernelText& kernel, const MapBody& part, ir::Expr first, ir::Expr end,
                      bool last) {
  const bool is_first = first->is_constant(0);
  const std::string before = is_first ? "" : " - " + kernel.size(first);
  const std::string condition = last ? "" : fmt::format("if (blockIdx.x < {}) ", kernel.size(end));
  return fmt::format("{}{}{{\nconst long long block = blockIdx.x{}, blocks = {}{};\n{}}}{}",
                     is_first ? "" : "else ", condition, before,
                     last ? "gridDim.x" : kernel.size(end), before, part.text, last ? "\n" : " ");
}

}  // namespace

MapsKernel maps_kernel(StepBuilder& builder, const std::vector<const fuse::MapStep*>& steps) {
  ir::ExprPool& pool = builder.pool();
  const MapThreads threads = MapThreads::of_blocks("block", "blocks");
  const ir::Expr most = pool.integer(kMostBlocks / static_cast<int64_t>(steps.size()));
  KernelText kernel = builder.kernel();
  MapsKernel result;
  std::string equations = "maps\n", text;
  ir::Expr first = pool.integer(0);
  for (const fuse::MapStep* step : steps) {
    MapStores map = stores_of(builder, *step);
    equations += map.equations;
    const MapShape shape = simplified(pool, std::move(map.shape));
    auto tiled = tiled_map(kernel, shape);
    auto* tiles = std::get_if<TiledMap>(&tiled);
    result.tiles.push_back(tiles == nullptr ? std::nullopt : std::optional(std::move(*tiles)));
    result.parts.push_back(map_body(kernel, shape, threads));
    MapBody& part = result.parts.back();
    part.blocks = pool.make(ir::ExprOp::Min, {part.blocks, most});
    const ir::Expr end = pool.add(first, part.blocks);
    text += part_text(kernel, part, first, end, result.parts.size() == steps.size());
    first = end;
  }
  result.launch = kernel.launch(kMapsFamily, equations, {}, "", text, kMapThreads);
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
    all.steps = std::max(all.steps, work.steps / part.lanes);
  }
  return std::max(longest, select::time_of(all, builder.target, 1, resident));
}

double MapsKernel::time_apart(const StepBuilder& builder, const KnownSizes& sizes) const {
  double time = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double plain = parts[i].time(builder, sizes);
    time += tiles[i] ? std::min(plain, tiles[i]->time(builder, sizes)) : plain;
  }
  return time;
}

}  // namespace redfuser::codegen
