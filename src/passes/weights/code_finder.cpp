#include "passes/weights/code_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "cpu/select/make_kernel.h"
#include "cpu/step.h"
#include "fuse/plan.h"
#include "ir/depth.h"
#include "passes/weights/block_numbers.h"

namespace redfuser::passes {
namespace {

// Of an origin; longer chains of constants start anew.
constexpr uint32_t kMostDepth = 100;
// Smaller matrices gain nothing; filters of any size may be operands of integer products.
constexpr int64_t kMinElements = 1 << 12;
int64_t least_elements(size_t rank) { return rank > 2 ? 1 : kMinElements; }
// Blocks that kernels take, beside one of the whole depth.
constexpr int64_t kBlocks[] = {256, 128, 64, 32, 16};

bool is_integral(ir::Expr e) { return is_integer(e->dtype); }

}  // namespace

void CodeFinder::note(ir::ValueId value, const std::vector<ir::Expr>& axes, ir::Expr body) {
  if (body->bound_level > 0) return;
  ir::Expr whole = traced(body);
  if (!has_integers(whole, least_elements(axes.size())) ||
      ir::expr_extent(whole).depth > kMostDepth)
    return;
  origins_[value] = {axes, whole};
  visit(whole, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Read) read_.insert(static_cast<ir::ValueId>(e->integer));
  });
}

// With the elements of noted constants in place of their reads.
ir::Expr CodeFinder::traced(ir::Expr body) const {
  return graph_.pool->rewrite(body, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Read) return nullptr;
    const auto origin = origins_.find(static_cast<ir::ValueId>(e->integer));
    if (origin == origins_.end()) return nullptr;
    std::vector<std::pair<ir::Expr, ir::Expr>> index;
    for (size_t i = 0; i < e->args.size(); ++i) {
      index.emplace_back(origin->second.axes[i], traced(e->args[i]));
    }
    return graph_.pool->substitute(origin->second.body, index);
  });
}

bool CodeFinder::has_integers(ir::Expr body, int64_t least) const {
  bool found = false;
  visit(body, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read || !is_integral(e)) return;
    const ir::Value& value = graph_.values[static_cast<size_t>(e->integer)];
    found |= value.is_constant() && 2 * value.constant.size() >= least;
  });
  return found;
}

std::optional<CodeFinder::Parts> CodeFinder::parts_of(ir::Expr e) const {
  ir::ExprPool& pool = *graph_.pool;
  switch (e->op) {
    case ir::ExprOp::Cast: {
      if (is_integral(e->args[0])) return difference_of(e->args[0]);
      const auto parts = parts_of(e->args[0]);
      // Rounding a scaled code is not the last step.
      return parts && parts->scale == nullptr ? parts : std::nullopt;
    }
    case ir::ExprOp::Sub:
    case ir::ExprOp::Add: {
      auto parts = parts_of(e->args[0]);
      if (!parts || parts->scale || parts->zero) return std::nullopt;
      ir::Expr other = e->args[1];
      parts->zero =
          e->op == ir::ExprOp::Sub ? other : pool.sub(pool.number(0, other->dtype), other);
      return parts;
    }
    case ir::ExprOp::Mul:
      for (const size_t i : {0, 1}) {
        auto parts = parts_of(e->args[i]);
        if (!parts || parts->scale) continue;
        parts->scale = e->args[1 - i];
        return parts;
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Differences of narrower integers wrap around, so they are codes of their own.
CodeFinder::Parts CodeFinder::difference_of(ir::Expr integer) const {
  const bool wide = integer->dtype == DType::Int32 || integer->dtype == DType::Int64;
  if (wide && integer->op == ir::ExprOp::Sub) return {integer->args[0], integer->args[1]};
  return {integer};
}

// Whether the elements of every block along the axis are equal.
bool CodeFinder::alike_in_blocks(ir::Expr e, ir::Expr axis, int64_t block) const {
  if (e == nullptr || !e->depends_on(axis)) return true;
  ir::ExprPool& pool = *graph_.pool;
  const int64_t extent = axis->extent()->integer;
  if (block >= extent) return false;
  ir::Expr j = pool.axis("j", pool.integer((extent + block - 1) / block));
  ir::Expr r = pool.axis("r", pool.integer(block));
  ir::Expr inside = pool.add(pool.mul(j, pool.integer(block)), r);
  return !pool.substitute(e, {{axis, inside}})->depends_on(r);
}

bool CodeFinder::set_filters(ir::WeightCodes& codes, const Origin& origin,
                             const Parts& parts) const {
  codes.depth_axis = 1;
  codes.lines = origin.axes[0]->extent()->integer;
  codes.depth = 1;
  for (size_t i = 1; i < origin.axes.size(); ++i) {
    for (ir::Expr e : {parts.scale, parts.zero}) {
      if (e != nullptr && e->depends_on(origin.axes[i])) return false;
    }
    codes.depth *= origin.axes[i]->extent()->integer;
  }
  codes.block = codes.depth;
  return codes.lines * codes.depth > 0;
}

bool CodeFinder::set_blocks(ir::WeightCodes& codes, const Origin& origin,
                            const Parts& parts) const {
  if (origin.axes.size() > 2) return set_filters(codes, origin, parts);
  const auto fits = [&](size_t axis, int64_t block) {
    ir::Expr depth = origin.axes[axis];
    return alike_in_blocks(parts.scale, depth, block) && alike_in_blocks(parts.zero, depth, block);
  };
  const auto set = [&](size_t axis, int64_t block) {
    codes.depth_axis = axis;
    codes.depth = origin.axes[axis]->extent()->integer;
    codes.lines = origin.axes[1 - axis]->extent()->integer;
    codes.block = block;
    return true;
  };
  for (const size_t axis : {0, 1}) {
    const int64_t whole = origin.axes[axis]->extent()->integer;
    if (fits(axis, whole)) return set(axis, whole);
  }
  for (const int64_t block : kBlocks) {
    for (const size_t axis : {0, 1}) {
      if (fits(axis, block)) return set(axis, block);
    }
  }
  return false;
}

// The elements over the axes, as a tensor.
Tensor CodeFinder::evaluated(const std::vector<ir::Expr>& axes, ir::Expr body, ThreadPool& pool) {
  const ir::ValueId id = graph_.add_value(fmt::format("codes{}", graph_.values.size()));
  ir::Value& value = graph_.values.back();
  value.dtype = body->dtype;
  for (ir::Expr axis : axes) value.shape.push_back(axis->extent());
  std::vector<Tensor> tensors(graph_.values.size());
  visit(body, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read) return;
    tensors[static_cast<size_t>(e->integer)] =
        graph_.values[static_cast<size_t>(e->integer)].constant;
  });
  std::vector<int64_t> symbols;
  cpu::RunContext context{graph_, tensors, symbols, pool};
  cpu::make_kernel(graph_, fuse::MapStep{axes, {{id, body}}})->run(context);
  graph_.values.pop_back();
  return std::move(tensors[static_cast<size_t>(id)]);
}

std::shared_ptr<const ir::WeightCodes> CodeFinder::find(ir::ValueId id, ThreadPool& threads) {
  const auto found = origins_.find(id);
  const ir::Value value = graph_.values[static_cast<size_t>(id)];  // evaluation adds values
  if (found == origins_.end() || !is_float(value.dtype) || size_of(value.dtype) > 4) return nullptr;
  const Origin& origin = found->second;
  const size_t rank = origin.axes.size();
  if (rank < 2 || value.constant.size() < least_elements(rank)) return nullptr;
  // A product in fp32 may be rounded once more, to the value's type.
  ir::Expr body = origin.body;
  const bool cast = body->op == ir::ExprOp::Cast && body->args[0]->dtype == DType::Float32;
  if (cast) body = body->args[0];
  auto parts = parts_of(body);
  if (!parts) return nullptr;
  auto codes = std::make_shared<ir::WeightCodes>();
  if (!set_blocks(*codes, origin, *parts)) return nullptr;
  ir::ExprPool& pool = *graph_.pool;
  ir::Expr line = pool.axis("l", pool.integer(codes->lines));
  ir::Expr depth = pool.axis("d", pool.integer(codes->depth));
  ir::Expr block = pool.axis("j", pool.integer(codes->blocks()));
  const auto at = [&](ir::Expr e, DType dtype, ir::Expr along) {
    return pool.cast(dtype, pool.substitute(e, {{origin.axes[1 - codes->depth_axis], line},
                                                {origin.axes[codes->depth_axis], along}}));
  };
  ir::Expr start = pool.mul(block, pool.integer(codes->block));
  const auto per_block = [&](ir::Expr e, double otherwise) {
    ir::Expr number = e ? e : pool.number(otherwise, DType::Float32);
    return evaluated({line, block}, at(number, DType::Float32, start), threads);
  };
  const Tensor integers =
      rank > 2 ? evaluated(origin.axes, pool.cast(DType::Int32, parts->code), threads)
               : evaluated({line, depth}, at(parts->code, DType::Int32, depth), threads);
  const bool complete = set_codes(*codes, integers, per_block(parts->zero, 0)) &&
                        set_scales(*codes, per_block(parts->scale, 1), value.dtype) &&
                        gives(*codes, value.constant, threads);
  return complete ? codes : nullptr;
}

}  // namespace redfuser::passes
