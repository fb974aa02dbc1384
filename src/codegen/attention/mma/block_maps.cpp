#include "codegen/attention/mma/block_maps.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/attention/pack_gqa.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

using Indices = std::vector<ir::Expr>;

// The index of each dimension in the reads of a value; null where reads differ. Empty where nothing
// reads the value.
Indices read_indices(const cascade::Streaming& form, ir::ValueId value) {
  Indices result;
  const auto note = [&](ir::Expr root) {
    if (!root) return;
    visit(root, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Read || e->integer != value) return;
      if (result.empty()) result = e->args;
      for (size_t i = 0; i < result.size(); ++i) {
        if (result[i] != e->args[i]) result[i] = nullptr;
      }
    });
  };
  for (const cascade::Accumulator& each : form.accumulators) {
    note(each.lift);
    note(each.transport);
  }
  for (const cascade::Reference& each : form.references) note(each.value);
  for (ir::Expr each : form.finish) note(each);
  for (const cascade::CascadeOutput& each : form.cascade.outputs) note(each.body);
  return result;
}

// Finds where a block reads a value, from the indices that the packed rows have.
class Placer {
 public:
  Placer(ir::ExprPool& pool, const AttentionSpec& form) : pool_(pool), form_(form) {}

  // The places of the axes whose index is a coordinate of the block, or that of a group:
  //   axis = c · coordinate + e, 0 ≤ e < c
  std::vector<MapPlace> places(const std::vector<ir::Expr>& axes, const Indices& indices) const {
    std::vector<MapPlace> result;
    std::vector<ir::Expr> taken;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i]->op != ir::ExprOp::Axis || !indices[i]) continue;
      const auto place = this->place(axes[i], indices[i]);
      if (!place || std::find(taken.begin(), taken.end(), place->second) != taken.end()) continue;
      taken.push_back(place->second);
      result.push_back(place->first);
    }
    return result;
  }

 private:
  // With the coordinate that it has.
  std::optional<std::pair<MapPlace, ir::Expr>> place(ir::Expr axis, ir::Expr index) const {
    ir::Expr coordinate = nullptr, rest = nullptr;
    int64_t group = 0;
    for (const auto& [monomial, coefficient] : to_polynomial(index)) {
      const bool single = monomial.size() == 1 && coefficient > 0;
      if (single && is_coordinate(monomial[0]) && !coordinate) {
        coordinate = monomial[0];
        group = coefficient;
      } else if (single && coefficient == 1 && !rest) {
        rest = monomial[0];
      } else {
        return std::nullopt;
      }
    }
    if (!coordinate) return std::nullopt;
    ir::Expr size = pool_.integer(group);
    if (pool_.mul(coordinate->extent(), size) != axis->extent()) return std::nullopt;
    if (group == 1) {
      if (rest) return std::nullopt;
      return std::pair(MapPlace{axis, coordinate, nullptr}, coordinate);
    }
    if (!rest || !is_below(rest, size)) return std::nullopt;
    ir::Expr loop = pool_.shared_axis(fmt::format("of a group of {}", axis->integer), size);
    return std::pair(MapPlace{axis, pool_.add(pool_.mul(coordinate, size), loop), loop},
                     coordinate);
  }

  bool is_coordinate(ir::Expr e) const {
    return e->op == ir::ExprOp::Axis &&
           std::find(form_.others.begin(), form_.others.end(), e) != form_.others.end();
  }

  // Whether the values of a part of the packed rows are those below `size`.
  bool is_below(ir::Expr e, ir::Expr size) const {
    if (!form_.row) return false;
    if (e == form_.row) return form_.row->extent() == size;
    if (e->op == ir::ExprOp::FloorMod) return e->args[1] == size;
    return e->op == ir::ExprOp::FloorDiv && e->args[0] == form_.row &&
           form_.row->extent() == pool_.mul(size, e->args[1]);
  }

  ir::ExprPool& pool_;
  const AttentionSpec& form_;
};

// Items of a part start at a warp's first thread.
constexpr int kWarp = 32;

// Those of a block. There are few points for each: short items have less latency.
MapThreads own_threads(int count) {
  constexpr int kMost = 4;
  MapThreads threads;
  threads.of_block = count;
  threads.most = kMost;
  return threads;
}

}  // namespace

std::optional<BlockMaps> block_maps(StepBuilder& builder, const AttentionSpec& form,
                                    const fuse::CascadeStep& step,
                                    const std::vector<const fuse::MapStep*>& maps) {
  ir::ExprPool& pool = builder.pool();
  AttentionSpec carrying = form;
  std::vector<size_t> sizes;
  for (const fuse::MapStep* map : maps) {
    Indices all;
    for (const fuse::MapStep::Output& output : map->outputs) {
      const Indices own = read_indices(step.streaming, output.value);
      if (own.size() != map->axes.size() || own.empty()) return std::nullopt;
      if (all.empty()) all = own;
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i] != own[i]) all[i] = nullptr;
      }
    }
    sizes.push_back(all.size());
    carrying.carried.insert(carrying.carried.end(), all.begin(), all.end());
  }
  BlockMaps result{packed_gqa_rows(pool, carrying), {}, {}, ""};
  const Placer placer(pool, result.form);
  KernelText kernel = builder.kernel();
  MapThreads threads = own_threads(0);
  for (ir::Expr axis : result.form.others) threads.coordinates.emplace_back(axis, "c");
  auto from = result.form.carried.begin();
  for (size_t i = 0; i < maps.size(); ++i) {
    const Indices indices(from, from + static_cast<long>(sizes[i]));
    from += static_cast<long>(sizes[i]);
    MapStores stores = stores_of(builder, *maps[i], placer.places(maps[i]->axes, indices));
    result.shapes.push_back(simplified(pool, std::move(stores.shape)));
    if (has_reduce(result.shapes.back().stores)) return std::nullopt;
    result.items.push_back(map_body(kernel, result.shapes.back(), threads).items);
    result.equations += stores.equations;
  }
  return result;
}

ir::Expr turns_of(ir::ExprPool& pool, const BlockMaps& maps, int threads) {
  ir::Expr warps = pool.integer(0);
  for (ir::Expr items : maps.items) warps = pool.add(warps, ceil_div(pool, items, kWarp));
  return ceil_div(pool, warps, threads / kWarp);
}

double block_maps_time(int64_t turns) {
  // Of the first loads and their barrier, and of those of another turn.
  constexpr double kFirst = 1.2, kNext = 0.6;
  return turns == 0 ? 0 : kFirst + kNext * static_cast<double>(turns - 1);
}

std::string block_maps_text(KernelText& kernel, const BlockMaps& maps, int threads,
                            const std::string& other) {
  Emitter emitter(kernel);
  emitter.line(fmt::format("const long long other = {};", other));
  bind_coordinates(emitter, maps.form.others, "other");
  MapThreads own = own_threads(threads);
  for (ir::Expr axis : maps.form.others) {
    if (axis->op == ir::ExprOp::Axis) own.coordinates.emplace_back(axis, emitter.emit(axis));
  }
  int64_t start = 0;
  for (size_t i = 0; i < maps.shapes.size(); ++i) {
    own.share = fmt::format("MapBlock{{{}}}", start);
    emitter.line(fmt::format("{{\n{}}}", map_body(kernel, maps.shapes[i], own).text));
    ir::Expr items = maps.items[i];
    const int64_t warps = items->is_constant() ? (items->integer + kWarp - 1) / kWarp : 1;
    start = (start + warps * kWarp) % threads;
  }
  return fmt::format("{{\n{}}}\n", emitter.close());
}

}  // namespace redfuser::codegen
