#include "codegen/elementwise/map_body.h"

#include <algorithm>
#include <set>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/elementwise/group_text.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

// Elements of a thread. Bytes that are only moved fill a vector; others are computed as words.
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

class VectorMap {
 public:
  VectorMap(KernelText& kernel, const MapShape& shape, const BlockNames& names)
      : pool_(kernel.pool()), kernel_(kernel), emitter_(kernel), shape_(shape), names_(names) {
    width_ = vector_width(kernel, shape);
    inner_ = shape.axes.back();
    const bool rounded = std::all_of(shape.stores.begin(), shape.stores.end(), [&](const Store& s) {
      return is_float(kernel.dtype_of(s.value)) && size_of(kernel.dtype_of(s.value)) == 2;
    });
    emitter_.set_fast_math(rounded);
  }

  int width() const { return width_; }
  ir::Expr groups() const { return ceil_div(pool_, inner_->extent(), width_); }

  std::string text() {
    ir::Expr lines = product_of(pool_, extents_of(pool_, outer_axes()));
    GroupText group(emitter_, shape_.stores, inner_, width_);
    emitter_.open();
    emitter_.line(
        fmt::format("const long long line = floor_div(group, {0}), first = (group - line "
                    "* {0}) * {1}, valid = {2} - first;",
                    kernel_.size(groups()), width_, kernel_.size(inner_->extent())));
    bind_coordinates(emitter_, outer_axes(), "line");
    group.add();
    const std::string loop = emitter_.close();
    const std::string count = kernel_.size(pool_.mul(lines, groups()));
    emitter_.line(fmt::format("const bool vector = {};", group.condition()));
    emitter_.line(
        fmt::format("for (long long group = {3} * {0}ll + threadIdx.x; group < {1}; group += "
                    "{4} * {0}ll) {{\n{2}}}",
                    kMapThreads, count, loop, names_.number, names_.count));
    return emitter_.close();
  }

 private:
  std::vector<ir::Expr> outer_axes() const { return {shape_.axes.begin(), shape_.axes.end() - 1}; }

  ir::ExprPool& pool_;
  KernelText& kernel_;
  Emitter emitter_;
  const MapShape& shape_;
  const BlockNames& names_;
  int width_;
  ir::Expr inner_;
};

// One element per thread, or per warp.
std::string element_text(KernelText& kernel, const MapShape& shape, bool warp,
                         const BlockNames& names) {
  Emitter emitter(kernel);
  emitter.set_warp_reductions(warp);
  emitter.open();
  bind_coordinates(emitter, shape.axes, "element");
  for (const Store& store : shape.stores) {
    const std::string value = emitter.emit_as(store.body, kernel.dtype_of(store.value));
    emitter.line(fmt::format("{}store({}, {}, {});", warp ? "if ((threadIdx.x & 31) == 0) " : "",
                             kernel.buffer(store.value, true), emitter.emit(store.offset), value));
  }
  const std::string loop = emitter.close();
  ir::Expr count = product_of(kernel.pool(), extents_of(kernel.pool(), shape.axes));
  const int per_block = warp ? kMapThreads / 32 : kMapThreads;
  emitter.line(
      fmt::format("for (long long element = {4} * {0}ll + {1}; element < {2}; element += {5} * "
                  "{0}ll) {{\n{3}}}",
                  per_block, warp ? "(threadIdx.x >> 5)" : "threadIdx.x", kernel.size(count), loop,
                  names.number, names.count));
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

MapBody map_body(KernelText& kernel, MapShape shape, const BlockNames& names) {
  ir::ExprPool& pool = kernel.pool();
  MapBody body;
  body.shape = std::move(shape);
  const MapShape& made = body.shape;
  const bool reduces = has_reduce(made.stores);
  if (!reduces && !made.axes.empty()) {
    VectorMap map(kernel, made, names);
    body.text = map.text();
    const std::vector<ir::Expr> outer = {made.axes.begin(), made.axes.end() - 1};
    body.blocks = ceil_div(pool, pool.mul(product_of(pool, extents_of(pool, outer)), map.groups()),
                           kMapThreads);
    body.registers = registers_of(pool, kernel, made, map.width());
  } else {
    const bool warp = reduces && wants_warp(pool, made.stores);
    if (warp) body.lanes = 32;
    body.text = element_text(kernel, made, warp, names);
    body.blocks = ceil_div(pool, product_of(pool, extents_of(pool, made.axes)),
                           warp ? kMapThreads / 32 : kMapThreads);
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
  return work;
}

double resident_threads(int registers) {
  constexpr int kUnit = 8;  // a thread takes a multiple of so many
  const int taken = (registers + kUnit - 1) / kUnit * kUnit * kMapThreads;
  const int blocks = select::kRegistersOfMultiprocessor / taken;
  return std::min(blocks * kMapThreads, select::kThreadsOfMultiprocessor);
}

}  // namespace redfuser::codegen
