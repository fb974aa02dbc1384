// Where the elements of reads and outputs lie.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "cpu/tile/bytes/words.h"
#include "cpu/tile/factors.h"
#include "cpu/tile/interval.h"
#include "cpu/tile/product_layout.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {
int TileBuilder::tensor_number(int64_t value) {
  auto found = std::find(program_.tensors.begin(), program_.tensors.end(), value);
  if (found != program_.tensors.end()) return static_cast<int>(found - program_.tensors.begin());
  program_.tensors.push_back(value);
  return static_cast<int>(program_.tensors.size() - 1);
}

std::optional<int64_t> TileBuilder::flat_stride(const ir::Polynomial& part,
                                                const std::vector<ir::Expr>& axes) const {
  if (part.empty()) return 0;
  std::vector<int64_t> coefficients(axes.size());
  for (auto& [monomial, coefficient] : part) {
    if (monomial.size() != 1) return std::nullopt;
    auto found = std::find(axes.begin(), axes.end(), monomial[0]);
    if (found == axes.end()) return std::nullopt;
    coefficients[static_cast<size_t>(found - axes.begin())] = coefficient;
  }
  int64_t expected = coefficients.back();
  const int64_t stride = expected;
  for (size_t i = axes.size(); i-- > 0;) {
    if (coefficients[i] != expected) return std::nullopt;
    expected *= extent_of(axes[i]);
  }
  return stride;
}

// Monomials are grouped by the dimensions that they vary over. `row_scope` is kNoScope where rows
// are the program's rows, else the scope whose columns are the rows of a product's operand.
Access TileBuilder::analyze(ir::Expr offset, const std::vector<ir::Expr>& row_axes,
                            const std::vector<ir::Expr>& column_axes, int column_scope,
                            int row_scope) {
  Access access;
  ir::Polynomial rows, columns, scalars, mixed;
  for (auto& term : to_polynomial(offset)) {
    ir::Expr monomial = from_polynomial(pool_, {term});
    bool row = depends_on_any(monomial, row_axes), column = depends_on_any(monomial, column_axes);
    if (monomial->has_leaf || monomial->has_read) {
      const Variation v = variation(monomial);
      row |= row_scope == kNoScope && has_rows(v.shape);
      row |= row_scope != kNoScope && v.scope == row_scope;
      column |= has_columns(v.shape) && v.scope == column_scope;
    }
    ir::Polynomial& part = row && column ? mixed : row ? rows : column ? columns : scalars;
    part.insert(term);
  }
  if (auto stride = flat_stride(rows, row_axes)) {
    access.row_stride = *stride;
  } else {
    access.row_offsets = converted(compile(from_polynomial(pool_, rows)), Elem::I64);
  }
  if (auto stride = flat_stride(columns, column_axes)) {
    access.column_stride = *stride;
  } else if (mixed.empty()) {
    access.by_data = from_polynomial(pool_, columns)->has_read;
    access.column_offsets = converted(compile(from_polynomial(pool_, columns)), Elem::I64);
  } else {
    mixed = mixed + columns;
  }
  if (mixed.size() == 1) access.whole_scale = std::exchange(mixed.begin()->second, 1);
  if (!mixed.empty()) {
    access.whole = converted(compile(from_polynomial(pool_, mixed)), Elem::I64);
  }
  ir::Polynomial computed;
  for (auto& [monomial, coefficient] : scalars) {
    if (monomial.empty()) {
      access.base.constant = coefficient;
    } else if (monomial.size() == 1 && monomial[0]->op == ir::ExprOp::Axis) {
      access.base.terms.push_back({roles_.at(monomial[0]->integer).slot, coefficient});
    } else {
      computed[monomial] = coefficient;
    }
  }
  if (!computed.empty()) {
    access.base.scalar = converted(compile(from_polynomial(pool_, computed)), Elem::I64);
  }
  return access;
}

ir::Expr TileBuilder::offset_of(ir::Expr read) {
  const Dims dims = dims_(read->integer);
  RF_CHECK(dims.size() == read->args.size(), "a read of value %{} has {} indices for rank {}",
           read->integer, read->args.size(), dims.size());
  return flat_offset(pool_, read->args, dims);
}

Access TileBuilder::access_of(ir::Expr read, const std::vector<ir::Expr>& row_axes,
                              const std::vector<ir::Expr>& column_axes, int column_scope,
                              int row_scope) {
  const Dims dims = dims_(read->integer);
  Access access = analyze(offset_of(read), row_axes, column_axes, column_scope, row_scope);
  access.tensor = tensor_number(read->integer);
  access.dtype = read->dtype;
  access.size = element_count(dims);
  access.in_range = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    const Interval range = interval_of(read->args[i]);
    access.in_range &= range.low >= 0 && range.high < dims[i];
  }
  return access;
}

int TileBuilder::depth_of(const Access& access) const {
  int depth = 0;
  for (RegisterId r : access.registers()) depth = std::max(depth, info(r).depth);
  for (auto& [slot, coefficient] : access.base.terms) {
    for (auto& [axis, role] : roles_) {
      if (role.kind == Role::Slot && role.slot == slot) depth = std::max(depth, role.depth);
    }
  }
  return depth;
}

RegisterId TileBuilder::build_read(ir::Expr read, bool words) {
  if (read->integer < 0) {
    auto found = ranked_.find(read->integer);
    RF_CHECK(found != ranked_.end(), "a ranked result {} is not computed", read->integer);
    const auto [matrix, filled] = found->second;
    const RegisterId index = converted(compile(read->args[0]), Elem::I64);
    const Register m = info(matrix), i = info(index);
    const Shape shape = i.shape | (has_rows(m.shape) ? Shape::Rows : Shape::Scalar);
    const int depth = std::max(m.depth, i.depth);
    const RegisterId out = make(m.elem, shape, i.scope, depth);
    emit(std::make_unique<TakeColumn>(out, matrix, index, filled), depth);
    return out;
  }
  const Variation v = variation(read);
  const std::vector<ir::Expr> no_axes;
  const auto& column_axes =
      has_columns(v.shape) ? program_.scopes[static_cast<size_t>(v.scope)].axes : no_axes;
  const std::vector<ir::Expr> axes = column_axes;  // the scopes may grow while indices are compiled
  Access access = access_of(read, rows_, axes, v.scope, kNoScope);
  const int depth = std::max(depth_of(access), v.depth);
  bool unit = false;
  if (access.whole == kNoRegister) {
    unit = has_columns(v.shape) ? access.column_offsets == kNoRegister && access.column_stride == 1
           : v.shape == Shape::Rows ? access.row_offsets == kNoRegister && access.row_stride == 1
                                    : true;
  }
  access.words = words;
  const Elem elem = words ? word_elem(read->dtype) : elem_of(read->dtype);
  const RegisterId out = make(elem, v.shape, v.scope, depth);
  if (unit && access.in_range && access.copies()) {
    Register& r = program_.registers[static_cast<size_t>(out)];
    r.dense = false;
    if (v.shape == Shape::Tile) r.offsets = access.row_offsets;
    emit(std::make_unique<LoadView>(out, std::move(access)), depth);
  } else {
    emit(std::make_unique<LoadCopy>(out, std::move(access)), depth);
  }
  return out;
}

void TileBuilder::store(int output, DType dtype, const Dims& dims,
                        const std::vector<ir::Expr>& axes, RegisterId value, int scope) {
  const std::vector<ir::Expr> no_axes;
  const std::vector<ir::Expr> columns =
      scope == kNoScope ? no_axes : program_.scopes[static_cast<size_t>(scope)].axes;
  Access access = analyze(flat_offset(pool_, axes, dims), rows_, columns, scope, kNoScope);
  RF_CHECK(access.whole == kNoRegister && access.base.scalar == kNoRegister,
           "an output's axes are not affine");
  access.tensor = output;
  access.dtype = dtype;
  access.size = element_count(dims);
  access.in_range = true;
  const Shape region = (rows_.empty() ? Shape::Scalar : Shape::Rows) |
                       (scope == kNoScope ? Shape::Scalar : Shape::Columns);
  const Elem elem = elem_of(dtype);
  access.words = has_words(dtype) && info(value).elem == word_elem(dtype);
  // Classes that a store converts itself need no conversion before.
  if (!access.words &&
      !kernels().store[static_cast<int>(info(value).elem)][static_cast<int>(dtype)]) {
    value = converted(value, elem);
  }
  if (!is_vector(info(value).shape, region)) value = spread(value, region, scope);
  const Register v = info(value);
  auto producer = producers_.find(value);
  const bool column_concat =
      access.column_offsets == kNoRegister && access.row_offsets == kNoRegister &&
      (has_columns(region) ? access.column_stride == 1 : access.row_stride == 1);
  const bool alike = v.elem == elem || (v.elem == Elem::I64 && elem == Elem::U64);
  const bool own = access.words || (alike && same_storage(dtype));
  if (producer != producers_.end() && column_concat && v.shape == region && own &&
      v.depth == depth()) {
    program_.registers[static_cast<size_t>(value)].dense = false;
    auto& block = *stack_.back().block;
    block.insert(block.begin(), std::make_unique<BindOutput>(value, std::move(access)));
    producers_.erase(producer);
    return;
  }
  emit(std::make_unique<Store>(std::move(access), value, region, scope), depth());
}

}  // namespace redfuser::cpu
