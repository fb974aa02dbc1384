#include <fmt/format.h>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/elementwise/group_text.h"
#include "codegen/maps/box_map.h"

namespace redfuser::codegen {
namespace {

// Names of an operand in shared memory and of whether its units are aligned, by number of the read.
std::string box_name(size_t number) { return fmt::format("operand{}", number); }
std::string vector_name(size_t number) { return fmt::format("vector{}", number); }

std::vector<ir::Expr> places_of(const std::vector<BoxAxis>& axes) {
  std::vector<ir::Expr> places;
  for (const BoxAxis& axis : axes) places.push_back(axis.place);
  return places;
}

// The text of a kernel.
class BoxText {
 public:
  BoxText(KernelText& kernel, const BoxMap& map)
      : pool_(kernel.pool()),
        kernel_(kernel),
        emitter_(kernel),
        map_(map),
        small_(has_small_index(pool_, map.outside)) {
    emitter_.set_fast_math(rounds_to_16_bits(kernel, map.shape));
  }

  std::string text() {
    const std::string fill = fill_text();
    GroupText group(emitter_, places_of(map_.along), true);
    const std::string compute = compute_text(group);
    emitter_.line(fmt::format("using Box = MapBox<{}, {}, {}, {}, {}>;", map_.width,
                              map_.row_count(), map_.points_along(), map_.pitch, kBoxThreads));
    for (size_t i = 0; i < map_.reads.size(); ++i) {
      emitter_.line(fmt::format("__shared__ __align__(16) OperandBox<Box, {}> {};",
                                storage_type(map_.reads[i].read->dtype), box_name(i)));
      emitter_.line(
          fmt::format("const bool {} = {};", vector_name(i), aligned_units(map_.reads[i])));
    }
    emitter_.line(fmt::format("const bool vector = {};", whole_groups(group)));
    emitter_.line(fmt::format(
        "box_map({}, [&](long long box) {{\n{}}}, [&](long long box) {{\n{}}});",
        kernel_.size(product_of(pool_, extents_of(pool_, map_.outside))), fill, compute));
    return emitter_.close();
  }

 private:
  // The conjunction of: points of these axes exist.
  std::string exist(const std::vector<BoxAxis>& axes) {
    std::vector<std::string> conditions;
    for (const BoxAxis& axis : axes) {
      if (!axis.left) continue;
      conditions.push_back(emitter_.emit(pool_.make(ir::ExprOp::Less, {axis.place, axis.left})));
    }
    return conditions.empty() ? "true" : all_of(conditions);
  }

  std::string fill_text() {
    emitter_.open();
    bind_coordinates(emitter_, map_.outside, "box", small_);
    for (size_t i = 0; i < map_.reads.size(); ++i) {
      const BoxRead& read = map_.reads[i];
      emitter_.open();
      bind_coordinates(emitter_, places_of(read.axes), "element", true);
      ir::Expr to = pool_.integer(0);
      for (const BoxAxis& axis : read.axes) {
        to = pool_.add(to, pool_.mul(axis.place, pool_.integer(map_.step_of(axis.place))));
      }
      const std::string from = emitter_.emit_whole(read.read->args[0], DType::Int64),
                        place = emitter_.emit(to), exists = exist(read.axes);
      emitter_.line(fmt::format("return BoxUnit{{{}, {}, {}}};", from, as_int(place), exists));
      const std::string find = emitter_.close();
      emitter_.line(fmt::format("fill_box<Box, {}, {}>({}, {}, {}, [&](int element) {{\n{}}});",
                                read.unit, map_.step_of(read.axes.back().place), box_name(i),
                                kernel_.buffer(read.read->integer), vector_name(i), find));
    }
    return emitter_.close();
  }

  std::string compute_text(GroupText& group) {
    emitter_.open();
    bind_coordinates(emitter_, map_.outside, "box", small_);
    const std::string along = emitter_.emit_whole(existing_along(), DType::Int64);
    emitter_.open();
    if (!map_.rows.empty()) bind_coordinates(emitter_, places_of(map_.rows), "row", true);
    const std::string row_exists = exist(map_.rows);
    if (row_exists != "true") emitter_.line(fmt::format("if (!({})) return;", row_exists));
    for (size_t i = 0; i < map_.reads.size(); ++i) {
      const std::string name = emitter_.fresh("g");
      emitter_.line(fmt::format("const auto {} = {}.group(row, group.first);", name, box_name(i)));
      group.bind(map_.reads[i].read, name + "[v]");
    }
    group.compute(map_.shape.stores);
    const std::string points = emitter_.close();
    emitter_.line(
        fmt::format("compute_box<Box>({}, vector, [&](int row, const Group<{}>& group) {{\n{}}});",
                    along, map_.width, points));
    return emitter_.close();
  }

  // Points of a row that exist: the outermost axis may end in it.
  ir::Expr existing_along() {
    const BoxAxis& outer = map_.along.front();
    const ir::Expr all = pool_.integer(map_.points_along());
    if (!outer.left) return all;
    const ir::Expr left = pool_.make(ir::ExprOp::Min, {outer.left, pool_.integer(outer.points)});
    return pool_.mul(left, pool_.integer(map_.points_along() / outer.points));
  }

  std::string whole_groups(GroupText& group) {
    if (map_.width == 1) return "true";
    std::vector<std::string> conditions = {group.condition(map_.width)};
    const BoxAxis& outer = map_.along.front();
    if (outer.left) {
      const ir::Expr inner = pool_.integer(map_.points_along() / outer.points);
      conditions.push_back(
          kernel_.multiples(offset_units(pool_, pool_.mul(outer.left, inner)), map_.width));
    }
    return all_of(conditions);
  }

  // Of the read's units: they start at multiples of their bytes, and are whole.
  std::string aligned_units(const BoxRead& read) {
    if (read.unit == 1) return "true";
    const BoxAxis& inner = read.axes.back();
    AlignedAccesses accesses(kernel_);
    accesses.add(kernel_.buffer(read.read->integer),
                 adjacent_from(pool_, read.read->args[0], inner.place));
    if (inner.left) accesses.require(offset_units(pool_, inner.left));
    return accesses.condition(pool_.integer(inner.points), read.unit);
  }

  ir::ExprPool& pool_;
  KernelText& kernel_;
  Emitter emitter_;
  const BoxMap& map_;
  const bool small_;
};

}  // namespace

void BoxMap::add(StepBuilder& builder, const std::string& equations, ir::Expr when) const {
  constexpr int64_t kMaxBlocks = int64_t{1} << 30;
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const std::string text = BoxText(kernel, *this).text();
  KernelLaunch launch = kernel.launch(kBoxMapFamily, "box map\n" + equations,
                                      {"device/maps/box_map.cuh"}, "", text, kBoxThreads);
  const ir::Expr blocks = pool.make(
      ir::ExprOp::Min, {product_of(pool, extents_of(pool, outside)), pool.integer(kMaxBlocks)});
  launch.grid[0] = pool.select(when, blocks, pool.integer(0));
  launch.time = time(builder, builder.sizes);
  launch.static_shared = static_cast<int>(shared_bytes());
  builder.result.calls.push_back(std::move(launch));
}

}  // namespace redfuser::codegen
