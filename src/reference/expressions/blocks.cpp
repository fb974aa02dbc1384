#include "reference/expressions/blocks.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "reference/expressions/operations.h"

namespace redfuser::reference {
namespace {

constexpr int64_t kBlock = 4096;  // points

// As many whole rows, planes, ... as fit, so that the outer axes are constant in most blocks.
int64_t block_size(const std::vector<ir::Expr>& axes) {
  int64_t inner = 1;
  for (size_t d = axes.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(extent_of(axes[d]), 1);
    if (extent > kBlock / inner) return std::min(kBlock / inner, extent) * inner;
    inner *= extent;
  }
  return inner;
}

// The index along an axis at the points [first, first + count).
Lanes indices(int64_t extent, int64_t stride, int64_t first, int64_t count) {
  int64_t index = first / stride % extent, left = stride - first % stride;
  if (left >= count || extent == 1) return Lanes::of(index);
  Words result(count);
  for (int64_t i = 0; i < count;) {
    const int64_t run = std::min(left, count - i);
    std::fill_n(result.data() + i, run, index);
    i += run;
    left = stride;
    index = index + 1 == extent ? 0 : index + 1;
  }
  return {{}, std::move(result)};
}

}  // namespace

int64_t extent_of(ir::Expr axis) {
  RF_CHECK(axis->extent()->is_constant(), "reference: an axis of unknown size");
  return axis->extent()->integer;
}

Dims extents_of(const std::vector<ir::Expr>& axes) {
  Dims extents;
  for (ir::Expr axis : axes) extents.push_back(extent_of(axis));
  return extents;
}

int64_t points_of(const std::vector<ir::Expr>& axes) {
  int64_t points = 1;
  for (ir::Expr axis : axes) points *= extent_of(axis);
  return points;
}

Blocks::Blocks(ir::Expr expr, const std::vector<ir::Expr>& axes, const Source& source)
    : size_(points_of(axes)), block_(block_size(axes)) {
  std::unordered_map<ir::Expr, size_t> places;
  visit(expr, [&](ir::Expr node) {
    Operation operation{node, {}};
    if (node->op == ir::ExprOp::Axis) {
      const auto found = std::find(axes.begin(), axes.end(), node);
      RF_CHECK(found != axes.end(), "reference: an axis that no loop runs over");
      operation.axis.extent = extent_of(node);
      for (auto inner = found + 1; inner != axes.end(); ++inner) {
        operation.axis.stride *= extent_of(*inner);
      }
    } else {
      for (ir::Expr arg : node->args) operation.args.push_back(places.at(arg));
    }
    if (node->op == ir::ExprOp::Read) operation.tensor = &source(node->integer);
    places.emplace(node, operations_.size());
    operations_.push_back(std::move(operation));
  });
  values_.resize(operations_.size());
}

const Lanes& Blocks::at(int64_t first, int64_t count) {
  for (size_t i = 0; i < operations_.size(); ++i) {
    values_[i] = computed(operations_[i], first, count);
  }
  return values_.back();
}

void Blocks::for_each(int64_t begin, int64_t end, const Body& body) {
  for (int64_t first = begin; first < end;) {
    const int64_t count = std::min(block_ - first % block_, end - first);
    body(first, count, at(first, count));
    first += count;
  }
}

Lanes Blocks::computed(const Operation& operation, int64_t first, int64_t count) const {
  ir::Expr expr = operation.expr;
  switch (expr->op) {
    case ir::ExprOp::Constant:
      return is_float(expr->dtype) ? Lanes::of(expr->number) : Lanes::of(expr->integer);
    case ir::ExprOp::Axis:
      return indices(operation.axis.extent, operation.axis.stride, first, count);
    case ir::ExprOp::Read:
      return read(operation);
    default:
      break;
  }
  RF_CHECK(!expr->args.empty() && expr->op != ir::ExprOp::Reduce, "reference: no operation {}",
           static_cast<int>(expr->op));
  std::vector<const Lanes*> args;
  for (const size_t arg : operation.args) args.push_back(&values_[arg]);
  return reference::operation(expr, args);
}

Lanes Blocks::read(const Operation& operation) const {
  const Tensor& tensor = *operation.tensor;
  if (tensor.size() == 0) return is_float(tensor.dtype()) ? Lanes::of(0.0) : Lanes::of(int64_t{0});
  Words position = Words::Zero(1);
  for (size_t d = 0; d < operation.args.size(); ++d) {
    const int64_t size = tensor.dims()[d];
    const Words index = values_[operation.args[d]].words.max(0).min(size - 1);
    if (position.size() == index.size()) {
      position = position * size + index;
    } else if (position.size() == 1) {
      position = position[0] * size + index;
    } else {
      position = position * size + index[0];
    }
  }
  return elements_at(tensor, position);
}

}  // namespace redfuser::reference
