#include "cpu/tile/product_layout.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/tile/bytes/low_bit_convert.h"
#include "cpu/tile/specialize.h"
#include "ir/evaluate.h"

namespace redfuser::cpu {

int64_t index_at(ir::Expr expr, const std::vector<ir::Expr>& axes,
                 const std::vector<int64_t>& point) {
  auto arg = [&](size_t i) { return index_at(expr->args[i], axes, point); };
  switch (expr->op) {
    case ir::ExprOp::Constant:
      return expr->integer;
    case ir::ExprOp::Axis: {
      auto found = std::find(axes.begin(), axes.end(), expr);
      RF_CHECK(found != axes.end(), "an index uses an axis that is not its own");
      return point[static_cast<size_t>(found - axes.begin())];
    }
    case ir::ExprOp::Add: {
      int64_t total = 0;
      for (size_t i = 0; i < expr->args.size(); ++i) total += arg(i);
      return total;
    }
    case ir::ExprOp::Mul: {
      int64_t total = 1;
      for (size_t i = 0; i < expr->args.size(); ++i) total *= arg(i);
      return total;
    }
    default:
      return static_cast<int64_t>(evaluate(
          expr, [&](ir::Expr leaf) { return static_cast<double>(index_at(leaf, axes, point)); }));
  }
}

ir::Expr flat_offset(ir::ExprPool& pool, const std::vector<ir::Expr>& indices, const Dims& dims) {
  ir::Expr offset = pool.integer(0);
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    offset = pool.add(offset, pool.mul(indices[i], pool.integer(stride)));
    stride *= dims[i];
  }
  return offset;
}

namespace {

OffsetPart part_of(ir::ExprPool& pool, const ir::Polynomial& polynomial,
                   const std::vector<ir::Expr>& axes) {
  OffsetPart part;
  if (polynomial.empty()) return part;
  std::vector<int64_t> strides(axes.size());
  bool affine = true;
  for (auto& [monomial, coefficient] : polynomial) {
    auto found = std::find(axes.begin(), axes.end(), monomial[0]);
    affine &= monomial.size() == 1 && found != axes.end();
    if (affine) strides[static_cast<size_t>(found - axes.begin())] = coefficient;
  }
  int64_t expected = strides.back();
  for (size_t i = axes.size(); affine && i-- > 0;) {
    affine = strides[i] == expected;
    expected *= extent_of(axes[i]);
  }
  if (affine) {
    part.stride = strides.back();
    return part;
  }
  ir::Expr expr = from_polynomial(pool, polynomial);
  const int64_t count = extent_of(axes);
  std::vector<int64_t> point(axes.size());
  for (int64_t i = 0; i < count; ++i) {
    part.table.push_back(index_at(expr, axes, point));
    for (size_t d = axes.size(); d-- > 0;) {
      if (++point[d] < extent_of(axes[d])) break;
      point[d] = 0;
    }
  }
  return part;
}

}  // namespace

std::optional<SeparatedOffset> separate(ir::ExprPool& pool, ir::Expr offset,
                                        const std::vector<std::vector<ir::Expr>>& lists) {
  SeparatedOffset result;
  std::vector<ir::Polynomial> parts(lists.size());
  for (auto& term : to_polynomial(offset)) {
    if (term.first.empty()) {
      result.constant = term.second;
      continue;
    }
    ir::Expr monomial = from_polynomial(pool, {{term.first, 1}});
    if (monomial->has_read || monomial->has_leaf) return std::nullopt;
    int owner = -1;
    for (size_t i = 0; i < lists.size(); ++i) {
      const bool depends = std::any_of(lists[i].begin(), lists[i].end(),
                                       [&](ir::Expr axis) { return monomial->depends_on(axis); });
      if (depends && owner >= 0) return std::nullopt;
      if (depends) owner = static_cast<int>(i);
    }
    if (owner < 0) return std::nullopt;
    parts[static_cast<size_t>(owner)].insert(term);
  }
  for (size_t i = 0; i < lists.size(); ++i) {
    result.parts.push_back(part_of(pool, parts[i], lists[i]));
  }
  return result;
}

MatrixView view_of(const SeparatedOffset& s, const char* data, DType dtype, int64_t batch, int rows,
                   int64_t row, int columns, int64_t column) {
  const OffsetPart& r = s.parts[static_cast<size_t>(rows)];
  const OffsetPart& c = s.parts[static_cast<size_t>(columns)];
  int64_t offset = s.constant + s.parts[0].at(batch);
  MatrixView v;
  v.storage = static_cast<uint8_t>(dtype);
  if (is_low_bit_float(dtype)) v.code_values = code_values(dtype);
  v.row_stride = r.stride;
  v.column_stride = c.stride;
  if (r.table.empty()) {
    offset += row * r.stride;
  } else {
    v.row_offsets = r.table.data() + row;
  }
  if (c.table.empty()) {
    offset += column * c.stride;
  } else {
    v.column_offsets = c.table.data() + column;
  }
  v.data = data + offset * static_cast<int64_t>(size_of(dtype));
  return v;
}

}  // namespace redfuser::cpu
