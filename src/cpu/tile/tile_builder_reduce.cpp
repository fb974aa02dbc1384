// Reductions and products within tile programs.
#include <algorithm>

#include "base/error.h"
#include "cpu/tile/bytes/words.h"
#include "cpu/tile/factors.h"
#include "cpu/tile/interval.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {
namespace {

// A reduction over an axis up to this long keeps the whole axis in a register.
constexpr int64_t kFixedExtent = 1024;
// Elements that a longer sum over an axis loop adds up before they join the total: rounding errors
// grow with a part and the number of parts, not with their product.
constexpr int64_t kSumPart = 512;
// Columns of a tile of a longer reduction, and of one without rows beside it.
constexpr int64_t kReduceTile = 512, kOneRowTile = 4096;

BinaryOp combination(ir::Reduction reduction) {
  switch (reduction) {
    case ir::Reduction::Sum:
      return BinaryOp::Add;
    case ir::Reduction::Prod:
      return BinaryOp::Mul;
    case ir::Reduction::Max:
      return BinaryOp::Max;
    default:
      return BinaryOp::Min;
  }
}

// Whether the reduction picks one of the bytes that the body moves.
bool folds_bytes(ir::Reduction reduction, ir::Expr body) {
  const bool picks = reduction == ir::Reduction::Max || reduction == ir::Reduction::Min;
  return picks && is_integer(body->dtype) && bits_of(body->dtype) == 8 && moves_words(body);
}

// An accumulator of bytes in the order of their values.
RegisterId first_of_bytes(TileBuilder& builder, ir::Reduction reduction, Shape shape, int scope,
                          int depth) {
  constexpr int64_t kGreatest = 255;
  const RegisterId r = builder.make(Elem::Bool, shape, scope, depth);
  builder.emit(std::make_unique<Fill>(r, 0, reduction == ir::Reduction::Max ? 0 : kGreatest),
               depth);
  return r;
}

// The values of such bytes.
RegisterId values_of_bytes(TileBuilder& builder, RegisterId bytes, DType dtype) {
  constexpr int64_t kLowest = 128;
  const RegisterId values = builder.converted(bytes, Elem::I32);
  if (dtype != DType::Int8) return values;
  return builder.binary(BinaryOp::Sub, values, builder.constant(Elem::I32, 0, kLowest));
}

}  // namespace

void TileBuilder::reduce_into(ir::Reduction reduction, RegisterId accumulator, RegisterId lift,
                              int scope) {
  RegisterId x = converted(lift, info(accumulator).elem);
  x = spread(x, Shape::Columns, scope);
  const auto op = static_cast<int>(reduce_op(reduction));
  const ReduceFn function = kernels().reduce[static_cast<int>(info(x).elem)][op];
  RF_CHECK(function, "no CPU kernel for a reduction of this element class");
  emit(std::make_unique<ReduceColumns>(function, accumulator, x), depth());
}

TileBuilder::Ranked TileBuilder::make_ranked(Elem elem, bool rows, int64_t keep, int depth) {
  const int scope = static_cast<int>(program_.scopes.size());
  Scope& s = program_.scopes.emplace_back();
  s.extent = s.tile = std::max<int64_t>(keep, 1);
  const Shape shape = rows ? Shape::Tile : Shape::Columns;
  Ranked list{make(elem, shape, scope, depth), make(Elem::I64, shape, scope, depth)};
  emit(std::make_unique<Fill>(list.values, 0, 0), depth);
  emit(std::make_unique<Fill>(list.indices, 0, 0), depth);
  return list;
}

void TileBuilder::keep_best(ir::Reduction reduction, const Ranked& list, int64_t keep,
                            RegisterId lift, int scope) {
  const RegisterId x = spread(converted(lift, info(list.values).elem), Shape::Columns, scope);
  emit(std::make_unique<KeepBest>(wants_large(reduction), keep, list.values, list.indices, x),
       depth());
}

// Reductions over the same bound axes share their columns and common subexpressions.
const std::vector<ir::Expr>& TileBuilder::fixed_axes(const std::vector<ir::Expr>& bound) {
  std::vector<int64_t> key;
  for (ir::Expr axis : bound) key.push_back(axis->integer);
  std::vector<ir::Expr>& axes = fixed_axes_[key];
  if (axes.empty()) {
    for (ir::Expr axis : bound) axes.push_back(pool_.axis("k", axis->args[0]));
  }
  return axes;
}

RegisterId TileBuilder::build_reduce(ir::Expr reduce) {
  if (running_ && running_->reduce == reduce) return build_running();
  const Variation v = variation(reduce);
  if (picks_element(reduce->reduction)) return build_ranked(reduce, v);
  if (!has_columns(v.shape)) return build_row_reduce(reduce, v);
  const RegisterId product = build_product(reduce, v);
  return product != kNoRegister ? product : build_loop_reduce(reduce, v);
}

// Sums and products wrap around at their end.
RegisterId TileBuilder::compile_term(ir::Expr reduce, ir::Expr body) {
  const bool modular =
      reduce->reduction == ir::Reduction::Sum || reduce->reduction == ir::Reduction::Prod;
  return modular ? compile_modular(body) : compile(body);
}

// The result is free of the current columns: the reduced axes take their place. Directly nested
// reductions of one kind are one reduction over several axes.
RegisterId TileBuilder::build_row_reduce(ir::Expr reduce, const Variation& v) {
  std::vector<ir::Expr> bound{reduce->bound_axis()};
  ir::Expr body = reduce->body();
  while (body->op == ir::ExprOp::Reduce && body->reduction == reduce->reduction &&
         body->dtype == reduce->dtype) {
    bound.push_back(body->bound_axis());
    body = body->body();
  }
  const int64_t extent = extent_of(bound);
  const Shape shape = has_rows(v.shape) ? Shape::Rows : Shape::Scalar;
  const bool bytes = folds_bytes(reduce->reduction, body);
  const DType dtype = body->dtype;
  const RegisterId total = bytes
                               ? first_of_bytes(*this, reduce->reduction, shape, kNoScope, v.depth)
                               : identity(reduce->reduction, dtype, shape, kNoScope, v.depth);
  if (extent > 0) {
    const bool fixed = extent <= kFixedExtent;
    std::vector<ir::Expr> axes;
    std::vector<std::pair<ir::Expr, ir::Expr>> map;
    if (fixed) axes = fixed_axes(bound);
    for (size_t i = 0; i < bound.size(); ++i) {
      if (!fixed) axes.push_back(pool_.axis("k", bound[i]->args[0]));
      map.push_back({bound[i], axes[i]});
    }
    body = pool_.substitute(body, map);
    const int scope = fixed ? fixed_scope(axes) : looped_scope(axes);
    auto fold = [&] {
      const RegisterId term =
          bytes ? ordered_bytes(*this, compile_words(body), dtype) : compile_term(reduce, body);
      reduce_into(reduce->reduction, total, term, scope);
    };
    if (fixed) {
      at_depth(v.depth, fold);
    } else {
      program_.scopes[static_cast<size_t>(scope)].tile =
          shape == Shape::Rows ? kReduceTile : kOneRowTile;
      in_column_loop(scope, v.depth, fold);
    }
  }
  return bytes ? values_of_bytes(*this, total, dtype) : wrapped(total, reduce->dtype);
}

void TileBuilder::combine_into(ir::Reduction reduction, RegisterId total, RegisterId x) {
  const Elem elem = info(total).elem;
  const BinaryFn* functions =
      kernels().binary[static_cast<int>(elem)][static_cast<int>(combination(reduction))];
  RF_CHECK(functions[0], "no CPU kernel for a reduction of this element class");
  auto step = std::make_unique<Binary>(functions, total, total, converted(x, elem));
  step->elementwise = false;
  emit(std::move(step), depth());
}

RegisterId TileBuilder::build_loop_reduce(ir::Expr reduce, const Variation& v) {
  ir::Expr axis = pool_.axis("k", reduce->bound_axis()->args[0]);
  ir::Expr body = pool_.substitute(reduce->body(), {{reduce->bound_axis(), axis}});
  const ir::Reduction reduction = reduce->reduction;
  const bool bytes = folds_bytes(reduction, body);
  const DType dtype = body->dtype;
  const RegisterId total = bytes ? first_of_bytes(*this, reduction, v.shape, v.scope, v.depth)
                                 : identity(reduction, dtype, v.shape, v.scope, v.depth);
  const bool rounds = reduction == ir::Reduction::Sum && is_float(body->dtype);
  const bool in_parts = rounds && extent_of(axis) > kSumPart;
  const RegisterId part =
      in_parts ? identity(reduction, body->dtype, v.shape, v.scope, v.depth) : total;
  in_axis_loop(axis, v.depth, [&] {
    combine_into(
        reduction, part,
        bytes ? ordered_bytes(*this, compile_words(body), dtype) : compile_term(reduce, body));
    if (!in_parts) return;
    at_part_end(axis, kSumPart, [&] {
      combine_into(reduction, total, part);
      emit(std::make_unique<Fill>(part, 0, 0), depth());
    });
  });
  if (in_parts) at_depth(v.depth, [&] { combine_into(reduction, total, part); });
  return bytes ? values_of_bytes(*this, total, dtype) : wrapped(total, reduce->dtype);
}

RegisterId TileBuilder::build_running() {
  const Variation v = variation(running_->reduce);
  const RegisterId x = spread(compile_term(running_->reduce, running_->element), v.shape, v.scope);
  const int depth = std::max(v.depth, info(x).depth);
  const RegisterId total = make(info(x).elem, v.shape, v.scope, depth);
  emit(std::make_unique<RunningFold>(*running_, run_length_, total, x), depth);
  return wrapped(total, running_->reduce->dtype);
}

namespace {

// The best element of an axis for all columns at once: its elements one after the other.
RegisterId best_of_columns(TileBuilder& builder, ir::ExprPool& pool, ir::Expr reduce,
                           const TileBuilder::Variation& v) {
  ir::Expr axis = pool.axis("k", reduce->bound_axis()->args[0]);
  ir::Expr body = pool.substitute(reduce->body(), {{reduce->bound_axis(), axis}});
  const bool large = wants_large(reduce->reduction);
  const ir::Reduction extreme = large ? ir::Reduction::Max : ir::Reduction::Min;
  const RegisterId value = builder.identity(extreme, body->dtype, v.shape, v.scope, v.depth);
  const Elem elem = builder.info(value).elem;
  const RegisterId place = builder.make(Elem::I32, v.shape, v.scope, v.depth);
  builder.emit(std::make_unique<Fill>(place, 0, 0), v.depth);
  builder.in_axis_loop(axis, v.depth, [&] {
    const int depth = builder.depth();
    const RegisterId x =
        builder.spread(builder.converted(builder.compile(body), elem), v.shape, v.scope);
    const RegisterId so_far = builder.renamed(value, depth);
    RegisterId better = large ? builder.binary(BinaryOp::Less, so_far, x)
                              : builder.binary(BinaryOp::Less, x, so_far);
    if (is_float(body->dtype)) {  // NaN comes before every number, and nothing before NaN
      const RegisterId number = builder.binary(BinaryOp::Equal, x, x);
      const RegisterId all_numbers = builder.binary(BinaryOp::Equal, so_far, so_far);
      const RegisterId first_nan = builder.binary(BinaryOp::Less, number, all_numbers);
      better = builder.binary(BinaryOp::Or, better, first_nan);
    }
    const auto replace = [&](RegisterId old, RegisterId by) {
      auto step = std::make_unique<Select>(builder.info(old).elem, old, better, by, old);
      step->elementwise = false;
      builder.emit(std::move(step), depth);
    };
    replace(value, x);
    replace(place, builder.converted(builder.compile(axis), Elem::I32));
  });
  const bool index = reduce->integer != 0 || is_arg(reduce->reduction);
  return index ? builder.converted(place, elem_of(reduce->dtype)) : value;
}

}  // namespace

RegisterId TileBuilder::build_ranked(ir::Expr reduce, const Variation& v) {
  if (has_columns(v.shape) && reduce->args.size() <= 2) {
    return best_of_columns(*this, pool_, reduce, v);
  }
  RF_CHECK(!has_columns(v.shape) || reduce->args.size() > 2,
           "a ranked reduction over the columns of a tile is not supported");
  ir::Expr rank = reduce->args.size() > 2 ? reduce->args[2] : pool_.integer(0);
  ir::Expr list_value =
      pool_.reduce(reduce->reduction, reduce->bound_axis(), reduce->body(), pool_.integer(0));
  const int64_t extent = extent_of(reduce->bound_axis());
  const int64_t keep = std::min(interval_of(rank).high + 1, std::max<int64_t>(extent, 1));
  const Variation inner = variation(list_value);
  RF_CHECK(!has_columns(inner.shape),
           "a ranked reduction over the columns of a tile is not supported");
  // The list is kept under two names that no read has, so that every rank finds it.
  const int64_t name =
      -(int64_t{1} << 40) - 2 * (static_cast<int64_t>(list_value->id) * 4096 + keep);
  if (!ranked_.count(name)) {
    ir::Expr axis = pool_.axis("k", reduce->bound_axis()->args[0]);
    ir::Expr body = pool_.substitute(reduce->body(), {{reduce->bound_axis(), axis}});
    const Ranked list = make_ranked(elem_of(body->dtype), has_rows(inner.shape), keep, inner.depth);
    const int scope = looped_scope({axis});
    program_.scopes[static_cast<size_t>(scope)].tile =
        std::min(kReduceTile, std::max<int64_t>(extent, 1));
    in_column_loop(scope, inner.depth,
                   [&] { keep_best(reduce->reduction, list, keep, compile(body), scope); });
    bind_ranked(name, list.values, std::min(keep, extent));
    bind_ranked(name - 1, list.indices, std::min(keep, extent));
  }
  const bool index = reduce->integer != 0 || is_arg(reduce->reduction);
  return compile(pool_.read(index ? name - 1 : name, reduce->dtype, {rank}));
}

namespace {

ir::Expr multiplied(ir::ExprPool& pool, const std::vector<ir::Expr>& factors, DType dtype) {
  ir::Expr result = nullptr;
  for (ir::Expr factor : factors) {
    ir::Expr x =
        factor->dtype == dtype || is_float(factor->dtype) ? factor : pool.cast(dtype, factor);
    result = result ? pool.mul(result, x) : x;
  }
  return result ? result : pool.number(1, dtype);
}

}  // namespace

std::optional<Access> TileBuilder::tensor_operand(ir::Expr b, Elem elem, int contraction,
                                                  int columns) {
  if (b->op != ir::ExprOp::Read || b->integer < 0 || !is_float(b->dtype)) return std::nullopt;
  if (elem == Elem::F32 && b->dtype == DType::Float64) return std::nullopt;
  const std::vector<ir::Expr> row_axes = program_.scopes[static_cast<size_t>(contraction)].axes;
  const std::vector<ir::Expr> column_axes = program_.scopes[static_cast<size_t>(columns)].axes;
  // Indices that read or refer to results are materialized instead.
  for (ir::Expr index : b->args) {
    if (index->has_read || index->has_leaf) return std::nullopt;
  }
  for (auto& [monomial, coefficient] : to_polynomial(offset_of(b))) {
    ir::Expr term = from_polynomial(pool_, {{monomial, 1}});
    const bool row = std::any_of(row_axes.begin(), row_axes.end(),
                                 [&](ir::Expr axis) { return term->depends_on(axis); });
    const bool column = std::any_of(column_axes.begin(), column_axes.end(),
                                    [&](ir::Expr axis) { return term->depends_on(axis); });
    if (row && column) return std::nullopt;
  }
  Access access = access_of(b, row_axes, column_axes, columns, contraction);
  if (!access.in_range || access.whole != kNoRegister) return std::nullopt;
  return access;
}

RegisterId TileBuilder::matrix_operand(ir::Expr b, Elem elem, ir::Expr row_axis, int columns) {
  const Variation v = variation(pool_.substitute(b, {{row_axis, pool_.integer(0)}}));
  int depth = v.depth;
  for (ir::Expr axis : program_.scopes[static_cast<size_t>(columns)].axes) {
    depth = std::max(depth, roles_.at(axis->integer).depth);
  }
  ir::Expr axis = pool_.axis("k", row_axis->args[0]);
  const RegisterId matrix = make_matrix(elem, Shape::Tile, columns, depth, extent_of(row_axis));
  emit(std::make_unique<Fill>(matrix, 0, 0), depth);
  ir::Expr body = pool_.substitute(b, {{row_axis, axis}});
  in_axis_loop(axis, depth, [&] {
    const RegisterId row = spread(converted(compile(body), elem), Shape::Columns, columns);
    emit(std::make_unique<StoreMatrixRow>(matrix, row, roles_.at(axis->integer).slot),
         this->depth());
  });
  return matrix;
}

// Σ_k a(row, k) · b(k, column) as a matrix product.
RegisterId TileBuilder::build_product(ir::Expr reduce, const Variation& v) {
  if (reduce->reduction != ir::Reduction::Sum || !is_float(reduce->dtype)) return kNoRegister;
  if (extent_of(reduce->bound_axis()) == 0) return kNoRegister;
  const Elem elem = elem_of(reduce->dtype);
  ir::Expr axis = fixed_axes({reduce->bound_axis()})[0];
  const int contraction = fixed_scope({axis});
  ir::Expr body = pool_.substitute(reduce->body(), {{reduce->bound_axis(), axis}});
  const Factors factors = factors_of(body, {axis});
  // Finds the dimensions that each factor varies over besides the contraction.
  std::vector<ir::Expr> a, b;
  for (ir::Expr factor : factors.bound) {
    const Variation f = variation(pool_.substitute(factor, {{axis, pool_.integer(0)}}));
    if (has_rows(f.shape) && has_columns(f.shape)) return kNoRegister;
    (has_columns(f.shape) ? b : a).push_back(factor);
  }
  if (a.empty() || b.empty()) return kNoRegister;
  RegisterId left = converted(compile(multiplied(pool_, a, reduce->dtype)), elem);
  left = spread(left, v.shape, contraction);
  ir::Expr right = multiplied(pool_, b, reduce->dtype);
  auto access = tensor_operand(right, elem, contraction, v.scope);
  const RegisterId matrix = access ? kNoRegister : matrix_operand(right, elem, axis, v.scope);
  int depth = v.depth;
  if (matrix != kNoRegister) depth = std::max(depth, info(matrix).depth);
  depth = std::max(depth, info(left).depth);
  RegisterId result = make(elem, v.shape, v.scope, depth);
  auto gemm = std::make_unique<Gemm>(result, left, contraction, false);
  if (access) {
    gemm->set_b(*access);
  } else {
    gemm->set_b(matrix, false);
  }
  emit(std::move(gemm), depth);
  for (ir::Expr factor : factors.free) {
    result = binary(BinaryOp::Mul, result, converted(compile(factor), elem));
  }
  for (ir::Expr divisor : factors.divisors) {
    result = binary(BinaryOp::Div, result, converted(compile(divisor), elem));
  }
  return result;
}

void TileBuilder::gemm_into(RegisterId state, ir::Expr lift, int scope, int columns) {
  const Elem elem = info(state).elem;
  const std::vector<ir::Expr> column_axes = program_.scopes[static_cast<size_t>(columns)].axes;
  const std::vector<ir::Expr> stream_axes = program_.scopes[static_cast<size_t>(scope)].axes;
  std::vector<ir::Expr> all = column_axes;
  all.insert(all.end(), stream_axes.begin(), stream_axes.end());
  const Factors factors = factors_of(lift, all);
  std::vector<ir::Expr> a, b;
  for (ir::Expr factor : factors.bound) {
    const bool with_columns = std::any_of(column_axes.begin(), column_axes.end(),
                                          [&](ir::Expr axis) { return factor->depends_on(axis); });
    (with_columns ? b : a).push_back(factor);
  }
  a.insert(a.end(), factors.free.begin(), factors.free.end());
  ir::Expr left_value = multiplied(pool_, a, lift->dtype);
  for (ir::Expr divisor : factors.divisors) left_value = pool_.div(left_value, divisor);
  const RegisterId left = spread(converted(compile(left_value), elem), Shape::Tile, scope);
  ir::Expr right = multiplied(pool_, b, lift->dtype);
  auto gemm = std::make_unique<Gemm>(state, left, scope, true);
  if (auto access = tensor_operand(right, elem, scope, columns)) {
    gemm->set_b(*access);
  } else {
    // One row per column of the state: the flattened columns as an axis of their own.
    ir::Expr flat = pool_.axis("d", pool_.integer(extent_of(column_axes)));
    std::vector<std::pair<ir::Expr, ir::Expr>> parts;
    int64_t inner = 1;
    for (size_t i = column_axes.size(); i-- > 0;) {
      const int64_t extent = extent_of(column_axes[i]);
      ir::Expr part = pool_.floordiv(flat, pool_.integer(inner));
      parts.push_back({column_axes[i], pool_.floormod(part, pool_.integer(extent))});
      inner *= extent;
    }
    gemm->set_b(matrix_operand(pool_.substitute(right, parts), elem, flat, scope), true);
  }
  emit(std::move(gemm), depth());
}

}  // namespace redfuser::cpu
