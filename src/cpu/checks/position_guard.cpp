#include "cpu/checks/position_guard.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/tensors/blocks.h"
#include "cpu/select/make_kernel.h"
#include "ir/evaluate.h"
#include "ir/interval.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ops/lowering.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kChunk = 1 << 16;

// The read of a whole value in its own order, or null.
ir::Expr whole_read(const ir::Graph& graph, ir::Expr position, const std::vector<ir::Expr>& axes) {
  if (position->op == ir::ExprOp::Cast) position = position->args[0];
  if (position->op != ir::ExprOp::Read) return nullptr;
  const auto& shape = graph.values[static_cast<size_t>(position->integer)].shape;
  const bool stored = position->dtype == DType::Int32 || position->dtype == DType::Int64;
  if (!stored || shape.size() != axes.size()) return nullptr;
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool along = position->args[i] == axes[i] ||
                       (shape[i]->is_constant(1) && position->args[i]->is_constant(0));
    if (!along || axes[i]->extent() != shape[i]) return nullptr;
  }
  return position;
}

// The first element outside the bounds, or -1.
template <typename T>
int64_t find_outside(const T* at, int64_t count, ir::Interval<int64_t> bounds, ThreadPool& pool) {
  std::atomic<int64_t> found = count;
  pool.parallel_for((count + kChunk - 1) / kChunk, [&](int64_t chunk, int) {
    const int64_t first = chunk * kChunk, last = std::min(count, first + kChunk);
    // The sign of a difference from either bound; bounds are too small for both to wrap around.
    uint64_t outside = 0;
    const auto low = static_cast<uint64_t>(bounds.low), high = static_cast<uint64_t>(bounds.high);
    for (int64_t i = first; i < last; ++i) {
      const auto position = static_cast<uint64_t>(static_cast<int64_t>(at[i]));
      outside |= (position - low) | (high - position);
    }
    if (outside >> 63 == 0) return;
    int64_t i = first;
    while (at[i] >= bounds.low && at[i] <= bounds.high) ++i;
    int64_t known = found;
    while (i < known && !found.compare_exchange_weak(known, i)) {
    }
  });
  return found == count ? -1 : found.load();
}

int64_t find_outside(const Tensor& positions, ir::Interval<int64_t> bounds, ThreadPool& pool) {
  return positions.dtype() == DType::Int32
             ? find_outside(positions.as<int32_t>(), positions.size(), bounds, pool)
             : find_outside(positions.as<int64_t>(), positions.size(), bounds, pool);
}

int64_t element(const Tensor& positions, int64_t i) {
  return positions.dtype() == DType::Int32 ? positions.as<int32_t>()[i]
                                           : positions.as<int64_t>()[i];
}

Tensor scalar_of(int64_t number) {
  Tensor tensor(DType::Int64, {});
  tensor.as<int64_t>()[0] = number;
  return tensor;
}

}  // namespace

PositionGuard::PositionGuard(const ir::Graph& graph, std::string where, ops::Positions positions)
    : where_(std::move(where)), spec_(std::move(positions)) {
  if (const ir::Expr read = whole_read(graph, spec_.position, spec_.axes)) {
    reads_.push_back(static_cast<ir::ValueId>(read->integer));
  } else if (!spec_.position->is_constant()) {
    make_kernel_of(graph);
  }
  fixed_ = std::all_of(reads_.begin(), reads_.end(), [&](ir::ValueId id) {
    return graph.values[static_cast<size_t>(id)].is_constant();
  });
}

std::vector<ir::Expr> PositionGuard::sizes() const {
  std::vector<ir::Expr> sizes{spec_.low, spec_.high};
  for (ir::Expr axis : spec_.axes) sizes.push_back(axis->extent());
  return sizes;
}

PositionGuard::~PositionGuard() = default;
PositionGuard::PositionGuard(PositionGuard&&) noexcept = default;

void PositionGuard::make_kernel_of(const ir::Graph& graph) {
  ir::ExprPool& pool = *graph.pool;
  own_ = std::make_unique<ir::Graph>();
  own_->pool = graph.pool;
  std::map<int64_t, ir::ValueId> numbers;
  visit(spec_.position, [&](ir::Expr node) {
    if (node->op != ir::ExprOp::Read || numbers.count(node->integer)) return;
    const ir::Value& value = graph.values[static_cast<size_t>(node->integer)];
    numbers.emplace(node->integer, own_->add_value(value.name, value.dtype));
    own_->values.back().shape = value.shape;
    reads_.push_back(static_cast<ir::ValueId>(node->integer));
  });
  const std::function<ir::Expr(ir::Expr)> renumbered = [&](ir::Expr expr) {
    return pool.rewrite(expr, [&](ir::Expr node) -> ir::Expr {
      if (node->op != ir::ExprOp::Read) return nullptr;
      std::vector<ir::Expr> index;
      for (ir::Expr at : node->args) index.push_back(renumbered(at));
      return pool.read(numbers.at(node->integer), node->dtype, std::move(index));
    });
  };
  const ir::Expr body = renumbered(pool.cast(DType::Int64, spec_.position));
  const ir::ValueId result = own_->add_value("", DType::Int64);
  for (ir::Expr axis : spec_.axes) own_->values.back().shape.push_back(axis->extent());
  if (body->bound_level > 0) {
    kernel_ = make_kernel(*own_, fuse::ReduceStep{result, spec_.axes, body});
  } else {
    kernel_ = make_kernel(*own_, fuse::MapStep{spec_.axes, {{result, body}}});
  }
}

Tensor PositionGuard::positions(RunContext& context, const StepPlan* growing) const {
  std::vector<Tensor> values;
  for (ir::ValueId id : reads_) {
    const Tensor& tensor = context.values[static_cast<size_t>(id)];
    values.push_back(tensor.defined() ? tensor
                                      : context.graph.values[static_cast<size_t>(id)].constant);
    RF_CHECK(values.back().defined(), "positions are looked at before \"{}\" is computed",
             context.graph.values[static_cast<size_t>(id)].name);
  }
  if (spec_.position->is_constant()) return scalar_of(spec_.position->integer);
  if (kernel_) {
    values.emplace_back();
    RunContext own{*own_, values, context.symbols, context.pool};
    growing != nullptr ? growing->run(own) : kernel_->run(own);
    std::swap(values.front(), values.back());
  }
  Dims dims;
  for (ir::Expr axis : spec_.axes) {
    dims.push_back(axis->op == ir::ExprOp::Axis ? evaluate_size(axis->extent(), context.symbols)
                                                : 1);
  }
  const Tensor& found = values.front();
  return found.dims().size() == dims.size() && found.dims() != dims ? part_below(found, dims)
                                                                    : found;
}

// The values of the guard's own graph are numbered in the order of its reads.
std::optional<std::shared_ptr<const StepPlan>> PositionGuard::growing_form(
    const ir::Graph& graph, const GrowingSizes& sizes, int threads) const {
  bool grows = std::any_of(reads_.begin(), reads_.end(),
                           [&](ir::ValueId id) { return sizes.grows(graph, id); });
  for (const ir::Expr size : this->sizes()) grows = grows || sizes.grows(size);
  if (!grows || !kernel_) return nullptr;
  GrowingSizes own = sizes;
  own.appends.clear();
  own.rooms.clear();
  for (size_t i = 0; i < reads_.size(); ++i) {
    const auto room = sizes.rooms.find(reads_[i]);
    if (room != sizes.rooms.end()) own.rooms[static_cast<ir::ValueId>(i)] = room->second;
  }
  const auto* kernel = dynamic_cast<const GrowingKernel*>(kernel_.get());
  auto plan = kernel == nullptr ? nullptr : kernel->growing_plan(own, threads);
  if (plan == nullptr || !plan->is_exact()) return std::nullopt;
  return plan;
}

void PositionGuard::run(RunContext& context, const StepPlan* growing) const {
  const ir::Interval<int64_t> bounds{evaluate_size(spec_.low, context.symbols),
                                     evaluate_size(spec_.high, context.symbols)};
  const ir::Expr position = spec_.position;
  if (position->is_constant() && position->integer >= bounds.low &&
      position->integer <= bounds.high) {
    return;
  }
  const Tensor found = positions(context, growing);
  const int64_t at = find_outside(found, bounds, context.pool);
  if (at < 0) return;
  user_error("{}: {} {} is out of range for size {}", where_, spec_.what, element(found, at),
             evaluate_size(spec_.size, context.symbols));
}

ops::Lowering::Inline index_arithmetic(const ir::Graph& graph) {
  constexpr int kMaxInlined = 64;
  return [&graph, left = kMaxInlined](ir::ValueId id) mutable {
    return is_integer(graph.values[static_cast<size_t>(id)].dtype) && left-- > 0;
  };
}

std::vector<PositionGuard> position_guards(const ir::Graph& graph, ir::NodeId id,
                                           const ops::Lowering::Inline& inlined) {
  const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
  if (node.def == nullptr || node.def->positions == nullptr) return {};
  auto positions_by = [&](const ops::Lowering::Inline& inlines) {
    ops::Lowering lowering(graph, inlines);
    const ops::LowerContext::Reader reader = [&](ir::ValueId input, std::vector<ir::Expr> at) {
      return lowering.element(input, std::move(at));
    };
    return node.def->positions(ops::LowerContext(graph, node, 0, {}, reader));
  };
  ir::ExprPool& pool = *graph.pool;
  std::vector<ops::Positions> read = positions_by(inlined);
  const std::vector<ops::Positions> meant = positions_by(index_arithmetic(graph));
  std::vector<PositionGuard> guards;
  for (size_t i = 0; i < read.size(); ++i) {
    const ir::Expr position = pool.cast(DType::Int64, meant[i].position);
    const bool proved = proved_less_equal(pool, meant[i].low, position) &&
                        proved_less_equal(pool, position, meant[i].high);
    if (proved) continue;
    guards.emplace_back(graph, fmt::format("[{}] node \"{}\"", node.op, node.name),
                        std::move(read[i]));
  }
  return guards;
}

}  // namespace redfuser::cpu
