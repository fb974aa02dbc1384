#include <fmt/format.h>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/elementwise/group_text.h"
#include "codegen/maps/tiled_map.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

// Names of the tile and of whether its lines are vectors, by number of the read.
std::string tile_name(size_t number) { return fmt::format("tile{}", number); }
std::string vector_name(size_t number) { return fmt::format("vector{}", number); }

// The text of a kernel.
class TiledText {
 public:
  TiledText(KernelText& kernel, const TiledMap& map, std::vector<ir::Expr> lines)
      : pool_(kernel.pool()),
        kernel_(kernel),
        emitter_(kernel),
        map_(map),
        lines_(std::move(lines)),
        line_(pool_.axis("along", map.points_along(pool_))),
        column_(pool_.axis("across", map.points_across(pool_))),
        small_(has_small_index(pool_, map.shape.axes)) {
    emitter_.set_fast_math(rounds_to_16_bits(kernel, map.shape));
  }

  std::string text() {
    const std::string fill = fill_text();
    GroupText group(emitter_, map_.along, small_);
    const std::string compute = compute_text(group);
    emitter_.line(fmt::format("using Tile = MapTile<{}, {}, {}, {}, {}>;", map_.width, map_.columns,
                              map_.along_side, map_.across_side, kTiledThreads));
    for (size_t i = 0; i < map_.reads.size(); ++i) {
      emitter_.line(fmt::format("__shared__ __align__(16) OperandTile<Tile, {}> {};",
                                storage_type(map_.reads[i]->dtype), tile_name(i)));
      emitter_.line(fmt::format("const bool {} = {};", vector_name(i), whole_lines(i)));
    }
    const auto of = [&](int width) {
      return fmt::format("[&](const Group<{}>& group, const TilePoint<Tile>& at) {{\n{}}}", width,
                         compute);
    };
    emitter_.line(fmt::format(
        "tiled_map<Tile>({}, {}, {}, {},\n[&](long long plane, long long begin, long long across) "
        "{{\n{}}},\n{},\n{});",
        kernel_.size(product_of(pool_, extents_of(pool_, lines_))), kernel_.size(line_->extent()),
        kernel_.size(column_->extent()), group.condition(map_.width), fill, of(map_.width), of(1)));
    return emitter_.close();
  }

 private:
  std::string fill_text() {
    emitter_.open();
    bind_coordinates(emitter_, lines_, "plane", small_);
    emitter_.bind(column_, "across");
    for (size_t i = 0; i < map_.reads.size(); ++i) {
      ir::Expr read = map_.reads[i];
      emitter_.open();
      emitter_.line("const long long place = begin + line;");
      bind_coordinates(emitter_, map_.along, "place", small_);
      const std::string start = emitter_.emit(pool_.add(first_of_line(read), column_));
      emitter_.line(fmt::format("return {};", start));
      const std::string start_text = emitter_.close();
      emitter_.line(fmt::format(
          "fill_tile({}, {}, [&](int line) {{\n{}}}, {} - begin, {} - across, {});", tile_name(i),
          kernel_.buffer(read->integer), start_text, kernel_.size(line_->extent()),
          kernel_.size(column_->extent()), vector_name(i)));
    }
    return emitter_.close();
  }

  std::string compute_text(GroupText& group) {
    emitter_.open();
    bind_coordinates(emitter_, lines_, "at.plane", small_);
    std::vector<std::string> elements;
    for (size_t i = 0; i < map_.reads.size(); ++i) {
      elements.push_back(emitter_.fresh("e"));
      emitter_.line(
          fmt::format("const auto {} = tile_elements(group, {}, at);", elements[i], tile_name(i)));
    }
    emitter_.open();
    bind_coordinates(emitter_, map_.across, "across", small_);
    for (size_t i = 0; i < map_.reads.size(); ++i) {
      const std::string name = emitter_.fresh("g");
      emitter_.line(fmt::format("const auto {} = {}.column(c);", name, elements[i]));
      group.bind(map_.reads[i], name + "[v]");
    }
    group.compute(map_.shape.stores);
    const std::string column = emitter_.close();
    emitter_.line(fmt::format("at.columns([&](int c, long long across) {{\n{}}});", column));
    return emitter_.close();
  }

  // The offset of the read where the points across begin.
  ir::Expr first_of_line(ir::Expr read) {
    std::vector<std::pair<ir::Expr, ir::Expr>> first;
    for (ir::Expr axis : map_.across) first.emplace_back(axis, pool_.integer(0));
    return pool_.substitute(read->args[0], first);
  }

  // Of the read's lines: they start at multiples of 16 bytes, and chunks are whole.
  std::string whole_lines(size_t number) {
    ir::Expr read = map_.reads[number];
    AlignedAccesses accesses(kernel_);
    accesses.add(kernel_.buffer(read->integer), first_of_line(read));
    return accesses.condition(column_->extent(), static_cast<int>(16 / size_of(read->dtype)));
  }

  ir::ExprPool& pool_;
  KernelText& kernel_;
  Emitter emitter_;
  const TiledMap& map_;
  const std::vector<ir::Expr> lines_;
  const ir::Expr line_, column_;  // of all points along, and of those across
  const bool small_;
};

}  // namespace

void TiledMap::add(StepBuilder& builder, const std::string& equations, ir::Expr when) const {
  constexpr int64_t kMaxBlocks = int64_t{1} << 30;
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const std::string text = TiledText(kernel, *this, lines()).text();
  KernelLaunch launch = kernel.launch(kTiledMapFamily, "tiled map\n" + equations,
                                      {"device/maps/tiled_map.cuh"}, "", text, kTiledThreads);
  ir::Expr blocks = product_of(pool, extents_of(pool, lines()));
  blocks = pool.mul(blocks, ceil_div(pool, points_along(pool), along_side));
  blocks = pool.mul(blocks, ceil_div(pool, points_across(pool), across_side));
  blocks = pool.make(ir::ExprOp::Min, {blocks, pool.integer(kMaxBlocks)});
  launch.grid[0] = pool.select(when, blocks, pool.integer(0));
  launch.time = time(builder, builder.sizes);
  launch.static_shared = shared_bytes();
  builder.result.calls.push_back(std::move(launch));
}

}  // namespace redfuser::codegen
