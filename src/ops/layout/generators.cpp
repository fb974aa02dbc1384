// Operators whose result is a function of indices and sizes.
#include <algorithm>

#include "base/error.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/tensor_element.h"

namespace redfuser::ops {
namespace {

// The dimensions that Shape returns, from `start` to `end`.
Shape selected_sizes(const NodeView& view) {
  const int64_t rank = view.rank(0);
  auto limited = [&](int64_t at) {
    if (at < 0) at += rank;
    return at < 0 ? int64_t{0} : std::min(at, rank);
  };
  const int64_t start = limited(view.integer("start", 0));
  const int64_t end = limited(view.integer("end", rank));
  const Shape& shape = view.shape(0);
  return start < end ? Shape(shape.begin() + start, shape.begin() + end) : Shape();
}

void infer_shape(InferContext& context) {
  const auto count = static_cast<int64_t>(selected_sizes(context).size());
  context.set(0, DType::Int64, {context.pool().integer(count)});
}

ir::Expr lower_shape(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Shape sizes = selected_sizes(context);
  ir::Expr result = sizes.empty() ? pool.integer(0) : sizes.back();
  for (size_t i = sizes.size(); i-- > 1;) {
    ir::Expr here = equal(pool, context.index()[0], pool.integer(static_cast<int64_t>(i) - 1));
    result = pool.select(here, sizes[i - 1], result);
  }
  return result;
}

void infer_size(InferContext& context) { context.set(0, DType::Int64, {}); }

ir::Expr lower_size(LowerContext& context) { return product_of(context.pool(), context.shape(0)); }

// max(ceil((limit - start) / delta), 0)
ir::Expr range_count(ir::ExprPool& pool, ir::Expr start, ir::Expr limit, ir::Expr delta) {
  if (is_float(start->dtype)) {
    ir::Expr span = pool.div(pool.sub(limit, start), delta);
    return at_least_zero(pool, pool.cast(DType::Int64, pool.make(ir::ExprOp::Ceil, {span})));
  }
  start = pool.cast(DType::Int64, start);
  limit = pool.cast(DType::Int64, limit);
  delta = pool.cast(DType::Int64, delta);
  ir::Expr span = pool.sub(limit, start), zero = pool.integer(0);
  if (proved_less(pool, zero, delta)) return at_least_zero(pool, ceil_div(pool, span, delta));
  // ceil(a / b) = -floor(-a / b), for either sign of b.
  return at_least_zero(pool, pool.sub(zero, pool.floordiv(pool.sub(zero, span), delta)));
}

void infer_range(InferContext& context) {
  const DType dtype = context.dtype(0);
  if (context.dtype(1) != dtype || context.dtype(2) != dtype) {
    context.fail("start, limit and delta differ in dtype");
  }
  ir::Expr delta = only_element(context, 2);
  if (delta->is_constant(0)) context.fail("delta is 0");
  context.set(
      0, dtype,
      {range_count(context.pool(), only_element(context, 0), only_element(context, 1), delta)});
}

ir::Expr lower_range(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype, wide = computing_type(dtype);
  auto element = [&](int input) { return pool.cast(wide, only_element(context, input)); };
  ir::Expr position = pool.cast(wide, context.index()[0]);
  return pool.cast(dtype, pool.add(element(0), pool.mul(position, element(2))));
}

const Tensor* tensor_attribute(const NodeView& view, const std::string& name) {
  if (!view.has(name)) return nullptr;
  const Tensor* tensor = std::get_if<Tensor>(&view.node().attributes.at(name));
  if (!tensor) view.fail(fmt::format("attribute {} is not a tensor", name));
  return tensor;
}

void infer_constant_of_shape(InferContext& context) {
  const Tensor* value = tensor_attribute(context, "value");
  if (value && value->size() != 1) context.fail("value must hold one element");
  const auto shape = size_argument(context, "", 0);
  if (!shape) context.fail("no shape");
  context.set(0, value ? value->dtype() : DType::Float32, *shape);
}

ir::Expr lower_constant_of_shape(LowerContext& context) {
  const Tensor* value = tensor_attribute(context, "value");
  return value ? tensor_element(context.pool(), *value, 0)
               : context.pool().number(0, DType::Float32);
}

template <typename T, typename Stored>
Tensor tensor_from(DType dtype, Dims dims, const std::vector<Stored>& numbers) {
  Tensor tensor(dtype, std::move(dims));
  for (size_t i = 0; i < numbers.size(); ++i) tensor.as<T>()[i] = static_cast<T>(numbers[i]);
  return tensor;
}

void infer_constant(InferContext& context) {
  for (auto& [name, attribute] : context.node().attributes) {
    if (const auto* tensor = std::get_if<Tensor>(&attribute)) {
      return context.set_constant(0, *tensor);
    }
    if (const auto* number = std::get_if<float>(&attribute)) {
      return context.set_constant(0, tensor_from<float>(DType::Float32, {}, std::vector{*number}));
    }
    if (const auto* number = std::get_if<int64_t>(&attribute)) {
      return context.set_constant(0, tensor_from<int64_t>(DType::Int64, {}, std::vector{*number}));
    }
    if (const auto* list = std::get_if<std::vector<float>>(&attribute)) {
      const Dims dims{static_cast<int64_t>(list->size())};
      return context.set_constant(0, tensor_from<float>(DType::Float32, dims, *list));
    }
    if (const auto* list = std::get_if<std::vector<int64_t>>(&attribute)) {
      const Dims dims{static_cast<int64_t>(list->size())};
      return context.set_constant(0, tensor_from<int64_t>(DType::Int64, dims, *list));
    }
    context.fail(fmt::format("attribute {} is not supported", name));
  }
  context.fail("no value");
}

void infer_trilu(InferContext& context) {
  if (context.rank(0) < 2) context.fail("the input must have two dimensions or more");
  context.set(0, context.dtype(0), context.shape(0));
}

// Upper keeps j - i >= k, lower keeps j - i <= k.
ir::Expr lower_trilu(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const size_t rank = context.index().size();
  ir::Expr k =
      context.has_input(1) ? pool.cast(DType::Int64, only_element(context, 1)) : pool.integer(0);
  ir::Expr i = context.index()[rank - 2], j = context.index()[rank - 1], diagonal = pool.add(i, k);
  const bool upper = context.integer("upper", 1) != 0;
  ir::Expr kept = upper ? pool.make(ir::ExprOp::LessEqual, {diagonal, j})
                        : pool.make(ir::ExprOp::LessEqual, {j, diagonal});
  return pool.select(kept, context.read_broadcast(0), pool.number(0, context.result().dtype));
}

void infer_eye_like(InferContext& context) {
  if (context.rank(0) != 2) context.fail("the input must have two dimensions");
  context.set(0, type_argument(context, "dtype", context.dtype(0)), context.shape(0));
}

ir::Expr lower_eye_like(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  ir::Expr diagonal = pool.add(context.index()[0], pool.integer(context.integer("k", 0)));
  return pool.select(equal(pool, context.index()[1], diagonal), pool.number(1, dtype),
                     pool.number(0, dtype));
}

constexpr OpDef kOps[] = {
    {"Shape", "", 1, infer_shape, lower_shape},
    {"Size", "", 1, infer_size, lower_size},
    {"Range", "", 11, infer_range, lower_range},
    {"Constant", "", 1, infer_constant, nullptr},
    {"ConstantOfShape", "", 9, infer_constant_of_shape, lower_constant_of_shape},
    {"Trilu", "", 14, infer_trilu, lower_trilu},
    {"EyeLike", "", 9, infer_eye_like, lower_eye_like},
};

}  // namespace

std::span<const OpDef> generator_ops() { return kOps; }

}  // namespace redfuser::ops
