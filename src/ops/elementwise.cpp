#include "ops/elementwise.h"

#include <algorithm>

#include "base/error.h"
#include "ir/scalars/integers.h"

namespace redfuser::ops {
namespace {

bool is_kind(DType dtype, Operand kind) {
  switch (kind) {
    case Operand::Any:
      return size_of(dtype) != 0;
    case Operand::Number:
      return is_float(dtype) || is_integer(dtype);
    case Operand::Float:
      return is_float(dtype);
    case Operand::Integer:
      return is_integer(dtype);
    case Operand::Boolean:
      return dtype == DType::Bool;
  }
  return false;
}

}  // namespace

void check_operand(const NodeView& view, int input, Operand kind) {
  if (!is_kind(view.dtype(input), kind)) {
    view.fail(
        fmt::format("input {} of dtype {} is not supported", input, name_of(view.dtype(input))));
  }
}

void check_input_count(const NodeView& view, int low, int high) {
  if (view.input_count() < low || view.input_count() > high) {
    view.fail(fmt::format("{} inputs are too {}", view.input_count(),
                          view.input_count() < low ? "few" : "many"));
  }
}

ir::Expr element_operation(ir::ExprPool& pool, ir::ExprOp op, std::vector<ir::Expr> args) {
  const bool sizes = std::all_of(args.begin(), args.end(), [](ir::Expr arg) {
    return arg->is_constant() && arg->dtype == DType::Int64;
  });
  if (sizes && is_modular(op)) {
    const int64_t a = args[0]->integer;
    return pool.integer(args.size() == 1 ? *word_operation(op, DType::Int64, a)
                                         : *word_operation(op, DType::Int64, a, args[1]->integer));
  }
  return pool.make(op, std::move(args));
}

Shape broadcast_inputs(InferContext& context, int first, Operand kind) {
  Shape shape;
  for (int i = first; i < context.input_count(); ++i) {
    check_operand(context, i, kind);
    if (context.dtype(i) != context.dtype(first)) {
      context.fail(fmt::format("inputs {} and {} are of dtypes {} and {}", first, i,
                               name_of(context.dtype(first)), name_of(context.dtype(i))));
    }
    shape = i == first ? context.shape(i) : context.broadcast(shape, context.shape(i));
  }
  return shape;
}

}  // namespace redfuser::ops
