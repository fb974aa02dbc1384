// Elementwise kernels: one thread per group of consecutive elements, or one warp per element with a
// long reduction.
#include "codegen/elementwise/elementwise_kernel.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "codegen/elementwise/group_text.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = int64_t{1} << 30;

struct MapShape {
  std::vector<ir::Expr> axes;  // merged; innermost last
  std::vector<Store> stores;
};

void merge_axes(ir::ExprPool& pool, MapShape& shape) {
  std::erase_if(shape.axes, [](ir::Expr axis) { return axis->op != ir::ExprOp::Axis; });
  for (size_t i = shape.axes.size(); i-- > 1;) merge_pair(pool, shape.axes, shape.stores, i - 1);
}

// The position at which selections change sides along the innermost axis: c of `axis < c`, if it is
// the only one.
int64_t boundary(const MapShape& shape) {
  ir::Expr axis = shape.axes.back();
  std::set<int64_t> found;
  for (const Store& store : shape.stores) {
    visit(store.body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Less && e->args[0] == axis && e->args[1]->is_constant()) {
        found.insert(e->args[1]->integer);
      }
    });
  }
  return found.size() == 1 ? *found.begin() : 0;
}

// Splits f(i), i < 2 c, into f(r) and f(c + r), r < c, if selections change sides at c: both then
// use the plain index r, and common reads are loaded once.
void split_sides(ir::ExprPool& pool, MapShape& shape) {
  constexpr int64_t kUnit = 8;
  if (shape.axes.empty() || !shape.axes.back()->extent()->is_constant()) return;
  ir::Expr axis = shape.axes.back();
  const int64_t half = boundary(shape);
  if (half <= 0 || half % kUnit != 0 || axis->extent()->integer != 2 * half) return;
  ir::Expr low = pool.axis("r", pool.integer(half)), high = pool.add(low, pool.integer(half));
  std::vector<Store> stores;
  for (const Store& store : shape.stores) {
    for (ir::Expr index : {low, high}) {
      stores.push_back({store.value, pool.substitute(store.body, {{axis, index}}),
                        pool.substitute(store.offset, {{axis, index}})});
    }
  }
  shape.stores = std::move(stores);
  shape.axes.back() = low;
}

bool has_reduce(const std::vector<Store>& stores) {
  bool found = false;
  for (const Store& store : stores) {
    visit(store.body, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Reduce; });
  }
  return found;
}

// Whether every read in it is along the axis: consecutive points read consecutive elements.
bool reads_along(ir::ExprPool& pool, ir::Expr e, ir::Expr axis) {
  bool along = true;
  visit(e, [&](ir::Expr read) {
    if (read->op != ir::ExprOp::Read) return;
    const auto affine = affine_in(pool, read->args[0], axis);
    along &= affine && affine->stride->is_constant(1) && !affine->base->depends_on(axis);
  });
  return along;
}

// The terms of a reduction, times those of the largest one inside of it; more than `most` where it
// has more or cannot be written out.
int64_t terms_of(ir::Expr reduce, int64_t most) {
  const bool known = reduce->extent()->is_constant() && reduce->extent()->integer > 0;
  if (!known || picks_element(reduce->reduction)) return most + 1;
  int64_t inside = 1;
  visit(reduce->body(), [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Reduce) inside = std::max(inside, terms_of(e, most));
  });
  return reduce->extent()->integer <= most / inside ? reduce->extent()->integer * inside : most + 1;
}

// Reductions of few elements, as windows of pools are where channels come last, are written out:
// r = ⊕_k f(k) becomes f(0) ⊕ f(1) ⊕ ..., so that consecutive points are loaded together.
void write_out_reductions(ir::ExprPool& pool, MapShape& shape) {
  constexpr int64_t kMost = 32;
  if (shape.axes.empty()) return;
  bool taken = true;
  for (const Store& store : shape.stores) {
    taken &= reads_along(pool, store.body, shape.axes.back());
    visit(store.body, [&](ir::Expr e) {
      if (e->op != ir::ExprOp::Reduce) return;
      taken &= e->reduction == ir::Reduction::Sum || e->reduction == ir::Reduction::Max;
      taken &= terms_of(e, kMost) <= kMost;
    });
  }
  if (!taken) return;
  const std::function<ir::Expr(ir::Expr)> written = [&](ir::Expr root) {
    return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Reduce) return nullptr;
      ir::Expr body = written(e->body()), result = nullptr;
      for (int64_t k = 0; k < e->extent()->integer; ++k) {
        ir::Expr term = pool.substitute(body, {{e->bound_axis(), pool.integer(k)}});
        if (!result) {
          result = term;
        } else if (e->reduction == ir::Reduction::Sum) {
          result = pool.add(result, term);
        } else {
          result = pool.make(ir::ExprOp::Max, {result, term});
        }
      }
      return result;
    });
  };
  for (Store& store : shape.stores) store.body = written(store.body);
}

// A reduction for which a warp pays: outermost, long, and reading consecutive elements.
bool wants_warp(ir::ExprPool& pool, const std::vector<Store>& stores) {
  bool found = false;
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second) return;
    if (e->op != ir::ExprOp::Reduce) {
      for (ir::Expr arg : e->args) go(arg);
      return;
    }
    if (picks_element(e->reduction)) return;
    if (e->extent()->is_constant() && e->extent()->integer < 64) return;
    visit(e->body(), [&](ir::Expr inner) {
      if (inner->op != ir::ExprOp::Read) return;
      auto affine = affine_in(pool, inner->args[0], e->bound_axis());
      found |= affine && affine->stride->is_constant(1);
    });
  };
  for (const Store& store : stores) go(store.body);
  return found;
}

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
  VectorMap(StepBuilder& builder, KernelText& kernel, const MapShape& shape)
      : pool_(builder.pool()), kernel_(kernel), emitter_(kernel), shape_(shape) {
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
    emitter_.line(fmt::format(
        "for (long long group = blockIdx.x * {0}ll + threadIdx.x; group < {1}; group += "
        "gridDim.x * {0}ll) {{\n{2}}}",
        kThreads, count, loop));
    return emitter_.close();
  }

 private:
  std::vector<ir::Expr> outer_axes() const { return {shape_.axes.begin(), shape_.axes.end() - 1}; }

  ir::ExprPool& pool_;
  KernelText& kernel_;
  Emitter emitter_;
  const MapShape& shape_;
  int width_;
  ir::Expr inner_;
};

// One element per thread, or per warp.
std::string element_text(KernelText& kernel, const MapShape& shape, bool warp) {
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
  const int per_block = warp ? kThreads / 32 : kThreads;
  emitter.line(fmt::format(
      "for (long long element = blockIdx.x * {0}ll + {1}; element < {2}; element += gridDim.x * "
      "{0}ll) {{\n{3}}}",
      per_block, warp ? "(threadIdx.x >> 5)" : "threadIdx.x", kernel.size(count), loop));
  return emitter.close();
}

}  // namespace

bool merge_pair(ir::ExprPool& pool, std::vector<ir::Expr>& axes, std::vector<Store>& all,
                size_t outer) {
  ir::Expr a = axes[outer], b = axes[outer + 1];
  ir::Expr merged = pool.axis("e", pool.mul(a->extent(), b->extent()));
  auto offset_of = [&](ir::Expr offset) -> ir::Expr {
    auto parts = strided(pool, offset, {a, b});
    if (!parts || parts->strides[0] != pool.mul(parts->strides[1], b->extent())) return nullptr;
    return pool.add(parts->base, pool.mul(merged, parts->strides[1]));
  };
  std::vector<Store> stores = all;
  for (Store& store : stores) {
    store.offset = offset_of(store.offset);
    if (!store.offset) return false;
    store.body = pool.rewrite(store.body, [&](ir::Expr e) -> ir::Expr {
      if (e->op != ir::ExprOp::Read || !(e->depends_on(a) || e->depends_on(b))) return nullptr;
      ir::Expr offset = offset_of(e->args[0]);
      return offset ? pool.read(e->integer, e->dtype, {offset}) : nullptr;
    });
    if (store.body->depends_on(a) || store.body->depends_on(b)) return false;
  }
  all = std::move(stores);
  axes[outer] = merged;
  axes.erase(axes.begin() + static_cast<long>(outer) + 1);
  return true;
}

std::vector<ir::Expr> offset_units(ir::ExprPool& pool, ir::Expr offset) {
  std::vector<ir::Expr> units;
  for (auto& [monomial, coefficient] : to_polynomial(offset)) {
    ir::Expr unit = pool.integer(coefficient);
    for (ir::Expr atom : monomial) {
      if (is_size(atom)) unit = pool.mul(unit, atom);
    }
    if (std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
  }
  return units;
}

void bind_coordinates(Emitter& emitter, const std::vector<ir::Expr>& axes,
                      const std::string& index) {
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
    emitter.line(fmt::format("const long long {0} = floor_div({1}, {2}), {3} = {1} - {0} * {2};",
                             quotient, rest, extent, name));
    emitter.bind(axes[i], name);
    rest = quotient;
  }
}

// With `lanes` threads for each point.
static double map_time(const StepBuilder& builder, const MapShape& shape, int lanes) {
  std::vector<ir::Expr> roots;
  for (const Store& store : shape.stores) roots.push_back(store.body);
  select::Work work = select::work_of(roots, shape.axes, builder.sizes);
  for (const Store& store : shape.stores) {
    const double bytes = work.points * static_cast<double>(size_of(builder.dtype_of(store.value)));
    work.bytes += bytes;
    work.accesses += bytes;
  }
  return select::time_of(work, builder.target, lanes);
}

void add_map(StepBuilder& builder, const std::string& name, std::vector<ir::Expr> axes,
             std::vector<Store> stores, const std::string& comment) {
  ir::ExprPool& pool = builder.pool();
  MapShape shape{std::move(axes), std::move(stores)};
  merge_axes(pool, shape);
  if (has_reduce(shape.stores)) write_out_reductions(pool, shape);
  const bool reduces = has_reduce(shape.stores);
  if (!reduces) split_sides(pool, shape);
  KernelText kernel = builder.kernel();
  std::string body;
  ir::Expr blocks;
  int lanes = 1;
  if (!reduces && !shape.axes.empty()) {
    VectorMap map(builder, kernel, shape);
    body = map.text();
    std::vector<ir::Expr> outer = {shape.axes.begin(), shape.axes.end() - 1};
    blocks =
        ceil_div(pool, pool.mul(product_of(pool, extents_of(pool, outer)), map.groups()), kThreads);
  } else {
    const bool warp = reduces && wants_warp(pool, shape.stores);
    if (warp) lanes = 32;
    body = element_text(kernel, shape, warp);
    blocks = ceil_div(pool, product_of(pool, extents_of(pool, shape.axes)),
                      warp ? kThreads / 32 : kThreads);
  }
  KernelLaunch launch = kernel.launch(name, comment, {}, "", body, kThreads);
  launch.grid[0] = pool.make(ir::ExprOp::Min, {blocks, pool.integer(kMaxBlocks)});
  launch.time = map_time(builder, shape, lanes);
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

void generate_map(StepBuilder& builder, const fuse::MapStep& given) {
  ir::ExprPool& pool = builder.pool();
  const fuse::Append* append = builder.target.append_of(given.outputs.front().value);
  const fuse::MapStep step = append == nullptr ? given : appended(pool, given, *append);
  std::vector<Store> stores;
  std::string comment = "map\n";
  for (const fuse::MapStep::Output& output : step.outputs) {
    std::vector<ir::Expr> point = step.axes;
    if (append != nullptr) point[append->axis] = pool.add(append->begin, point[append->axis]);
    stores.push_back(
        {output.value, builder.flat.flat(output.body), builder.offset_of(output.value, point)});
    comment += fmt::format("%{} = {}\n", output.value, to_string(pool, output.body));
  }
  const ir::ValueId first = step.outputs[0].value;
  add_map(builder, "map", builder.memory_axes(first, step.axes), std::move(stores), comment);
}

void generate_reduce(StepBuilder& builder, const fuse::ReduceStep& step) {
  ir::ExprPool& pool = builder.pool();
  const std::string comment =
      fmt::format("reduce\n%{} = {}\n", step.value, to_string(pool, step.body));
  add_map(builder, "reduce", builder.memory_axes(step.value, step.axes),
          {{step.value, builder.flat.flat(step.body), builder.offset_of(step.value, step.axes)}},
          comment);
}

}  // namespace redfuser::codegen
