#include "codegen/elementwise/map_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/elementwise/group_text.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {

int vector_width(const KernelText& kernel, const MapShape& shape) {
  size_t smallest = 4;
  bool codes = true;
  auto note = [&](int64_t value) {
    const DType dtype = kernel.dtype_of(value);
    smallest = std::min(smallest, size_of(dtype));
    codes &= is_low_bit_float(dtype);
  };
  for (const Store& store : shape.stores) {
    note(store.value);
    visit(store.body, [&](ir::Expr e) {
      const bool number = is_float(e->dtype) || is_low_bit_float(e->dtype);
      if (e->op == ir::ExprOp::Read && number) note(e->integer);
    });
  }
  return codes ? 16 : smallest >= 4 ? 4 : 8;
}

bool rounds_to_16_bits(const KernelText& kernel, const MapShape& shape) {
  return std::all_of(shape.stores.begin(), shape.stores.end(), [&](const Store& store) {
    const DType dtype = kernel.dtype_of(store.value);
    return is_float(dtype) && size_of(dtype) == 2;
  });
}

namespace {

constexpr int kWarp = 32;

std::string config_text(int width, int lanes, const MapThreads& threads, bool small,
                        int batch = 1) {
  const std::string items = batch > 1 ? fmt::format(", {}", batch) : "";
  return fmt::format("MapConfig<{}, {}, {}{}{}>", width, lanes, threads.of_block,
                     small       ? ", true"
                     : batch > 1 ? ", false"
                                 : "",
                     items);
}

// Items that a thread loads at once, where an item has few bytes: else the start of blocks takes
// longer than what they move.
int batch_of(const KernelText& kernel, const MapShape& shape, int width) {
  constexpr size_t kEnough = 32, kLargeBody = 64;  // bytes of a thread; operations of an item
  size_t bytes = 0, operations = 0;
  std::set<ir::Expr> seen;
  for (const Store& store : shape.stores) {
    bytes += static_cast<size_t>(width) * size_of(kernel.dtype_of(store.value));
    visit(store.body, [&](ir::Expr e) {
      if (!seen.insert(e).second) return;
      ++operations;
      if (e->op == ir::ExprOp::Read) bytes += static_cast<size_t>(width) * size_of(e->dtype);
    });
  }
  if (operations > kLargeBody) return 1;
  int batch = 1;
  while (static_cast<size_t>(2 * batch) * bytes <= kEnough) batch *= 2;
  return batch;
}

// The most adjacent points, of up to `most`, whose accesses are not known to be apart from vectors.
// Single points of neighbouring threads fill sectors where groups without vectors do not. Points of
// 4 bytes stay in groups: a thread of one has too little to do (GEGLU of lines of 3987, H100: 52 us
// by single points, 43 by groups).
int aligned_width(const KernelText& kernel, const MapShape& shape, int most) {
  ir::ExprPool& pool = kernel.pool();
  ir::Expr inner = shape.axes.back();
  std::vector<ir::Expr> units = {inner->extent()};
  const auto add = [&](ir::Expr offset) {
    ir::Expr base = adjacent_from(pool, offset, inner);
    if (!base) return;
    const std::vector<ir::Expr> own = offset_units(pool, base);
    units.insert(units.end(), own.begin(), own.end());
  };
  for (const Store& store : shape.stores) {
    add(store.offset);
    visit(store.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && e->integer >= 0) add(e->args[0]);
    });
  }
  int width = most;
  for (ir::Expr unit : units) {
    while (unit->is_constant() && unit->integer % width != 0) width /= 2;
  }
  const bool wide = std::all_of(shape.stores.begin(), shape.stores.end(), [&](const Store& store) {
    return size_of(kernel.dtype_of(store.value)) >= 4;
  });
  return width == 1 && wide ? most : width;
}

class VectorMap {
 public:
  VectorMap(KernelText& kernel, const MapShape& shape, const MapThreads& threads)
      : pool_(kernel.pool()), kernel_(kernel), emitter_(kernel), shape_(shape), threads_(threads) {
    for (const auto& [axis, name] : threads.coordinates) emitter_.bind(axis, name);
    width_ = aligned_width(kernel, shape, std::min(vector_width(kernel, shape), threads.most));
    inner_ = shape.axes.back();
    small_ = has_small_index(pool_, shape.axes);
    batch_ = batch_of(kernel, shape, width_);
    emitter_.set_fast_math(rounds_to_16_bits(kernel, shape));
  }

  int width() const { return width_; }
  int batch() const { return batch_; }
  ir::Expr groups() const { return ceil_div(pool_, inner_->extent(), width_); }

  std::string text() {
    ir::Expr lines = product_of(pool_, extents_of(pool_, outer_axes()));
    GroupText group(emitter_, {inner_});
    emitter_.open();
    bind_coordinates(emitter_, outer_axes(), "line", small_);
    group.compute(shape_.stores);
    const std::string compute = emitter_.close();
    emitter_.line(
        fmt::format("map_groups<{0}>({1}, {{{2}, {3}, {4}}}, {5}, [&](long long line, const "
                    "Group<{6}>& group) {{\n"
                    "{7}}});",
                    config_text(width_, 1, threads_, small_, batch_), threads_.share,
                    kernel_.size(pool_.mul(lines, groups())), kernel_.size(groups()),
                    kernel_.size(inner_->extent()), width_ == 1 ? "true" : group.condition(width_),
                    width_, compute));
    return emitter_.close();
  }

 private:
  std::vector<ir::Expr> outer_axes() const { return {shape_.axes.begin(), shape_.axes.end() - 1}; }

  ir::ExprPool& pool_;
  KernelText& kernel_;
  Emitter emitter_;
  const MapShape& shape_;
  const MapThreads& threads_;
  int width_, batch_;
  bool small_;
  ir::Expr inner_;
};

// One element per thread, or per warp.
std::string element_text(KernelText& kernel, const MapShape& shape, bool warp,
                         const MapThreads& threads) {
  Emitter emitter(kernel);
  for (const auto& [axis, name] : threads.coordinates) emitter.bind(axis, name);
  emitter.set_warp_reductions(warp);
  emitter.open();
  const bool small = has_small_index(kernel.pool(), shape.axes);
  bind_coordinates(emitter, shape.axes, "point", small);
  for (const Store& store : shape.stores) {
    const std::string value = emitter.emit_as(store.body, kernel.dtype_of(store.value));
    emitter.line(fmt::format("{}store({}, {}, {});", warp ? "if ((threadIdx.x & 31) == 0) " : "",
                             kernel.buffer(store.value, true), emitter.emit(store.offset), value));
  }
  const std::string compute = emitter.close();
  ir::Expr count = product_of(kernel.pool(), extents_of(kernel.pool(), shape.axes));
  emitter.line(fmt::format("map_points<{}>({}, {}, [&](long long point) {{\n{}}});",
                           config_text(1, warp ? kWarp : 1, threads, small), threads.share,
                           kernel.size(count), compute));
  return emitter.close();
}

// A thread keeps the groups that it loads and stores, and the addresses of all that it touches.
int registers_of(ir::ExprPool& pool, const KernelText& kernel, const MapShape& shape, int width) {
  constexpr int kBase = 24, kWord = 4, kMost = 255;
  int registers = kBase;
  std::set<ir::Expr> seen;
  const auto add = [&](ir::Expr offset, DType dtype) {
    const auto affine = affine_in(pool, offset, shape.axes.back());
    const bool group = affine && affine->stride->is_constant(1);
    const int words = std::max(static_cast<int>(size_of(dtype)) / kWord, 1);
    registers += 2 + (group ? width : 1) * words;
  };
  for (const Store& store : shape.stores) {
    add(store.offset, kernel.dtype_of(store.value));
    visit(store.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read && seen.insert(e).second) add(e->args[0], e->dtype);
    });
  }
  return std::min(registers, kMost);
}

}  // namespace

// Blocks whose threads have one item, or share of one, up to as many as fill the device several
// times; beyond them a thread has `batch`.
static ir::Expr blocks_of(ir::ExprPool& pool, ir::Expr items, int batch) {
  constexpr int64_t kEnough = 2048;
  const ir::Expr all = ceil_div(pool, items, kMapThreads);
  if (batch == 1) return all;
  const ir::Expr few = pool.make(ir::ExprOp::Min, {all, pool.integer(kEnough)});
  return pool.make(ir::ExprOp::Max, {few, ceil_div(pool, items, int64_t{kMapThreads} * batch)});
}

MapBody map_body(KernelText& kernel, MapShape shape, const MapThreads& threads) {
  ir::ExprPool& pool = kernel.pool();
  MapBody body;
  body.shape = std::move(shape);
  const MapShape& made = body.shape;
  const bool reduces = has_reduce(made.stores);
  if (!reduces && !made.axes.empty()) {
    VectorMap map(kernel, made, threads);
    body.text = map.text();
    const std::vector<ir::Expr> outer = {made.axes.begin(), made.axes.end() - 1};
    body.items = pool.mul(product_of(pool, extents_of(pool, outer)), map.groups());
    body.blocks = blocks_of(pool, body.items, map.batch());
    body.registers = registers_of(pool, kernel, made, map.width());
  } else {
    const bool warp = reduces && wants_warp(pool, made.stores);
    if (warp) body.lanes = kWarp;
    body.text = element_text(kernel, made, warp, threads);
    body.items = product_of(pool, extents_of(pool, made.axes));
    body.blocks = ceil_div(pool, body.items, kMapThreads / body.lanes);
  }
  return body;
}

select::Work MapBody::work(const StepBuilder& builder, const KnownSizes& sizes) const {
  std::vector<ir::Expr> roots;
  for (const Store& store : shape.stores) roots.push_back(store.body);
  select::Work work = select::work_of(roots, shape.axes, sizes);
  for (const Store& store : shape.stores) {
    const double bytes = work.points * static_cast<double>(size_of(builder.dtype_of(store.value)));
    work.bytes += bytes;
    work.accesses += bytes;
  }
  // An item's coordinates are quotients and remainders.
  constexpr double kCoordinate = 8;
  if (items && shape.axes.size() > 1) {
    work.scalars += kCoordinate * static_cast<double>(shape.axes.size()) *
                    static_cast<double>(std::max<int64_t>(sizes.of(items), 0));
  }
  if (blocks) work.blocks = static_cast<double>(std::max<int64_t>(sizes.of(blocks), 0));
  return work;
}

double MapBody::time(const StepBuilder& builder, const KnownSizes& sizes) const {
  return select::time_of(work(builder, sizes), builder.target, lanes, resident_threads(registers));
}

double resident_threads(int registers) {
  constexpr int kUnit = 8;  // a thread takes a multiple of so many
  const int taken = (registers + kUnit - 1) / kUnit * kUnit * kMapThreads;
  const int blocks = select::kRegistersOfMultiprocessor / taken;
  return std::min(blocks * kMapThreads, select::kThreadsOfMultiprocessor);
}

}  // namespace redfuser::codegen
