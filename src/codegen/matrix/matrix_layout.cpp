#include "codegen/matrix/matrix_layout.h"

#include <algorithm>

#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser::codegen {
namespace {

// The stride of a list of axes merged into one; nullptr if they do not merge.
ir::Expr collapsed(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                   const std::vector<ir::Expr>& strides) {
  if (axes.empty()) return pool.integer(0);
  const bool broadcast = std::all_of(strides.begin(), strides.end(),
                                     [](ir::Expr stride) { return stride->is_constant(0); });
  if (broadcast) return pool.integer(0);
  for (size_t i = axes.size() - 1; i-- > 0;) {
    if (strides[i] != pool.mul(strides[i + 1], axes[i + 1]->extent())) return nullptr;
  }
  return strides.back();
}

// Proved directly, or because the stride is a multiple of the axes' extents, which are not
// negative.
bool forward_stride(ir::ExprPool& pool, ir::Expr stride, const std::vector<ir::Expr>& axes,
                    size_t first = 0) {
  if (proved_nonnegative(stride, ir::kWhereElementsExist)) return true;
  for (size_t i = first; i < axes.size(); ++i) {
    const ir::Division rest = divide(to_polynomial(stride), to_polynomial(axes[i]->extent()));
    if (!rest.remainder.empty()) continue;
    if (forward_stride(pool, from_polynomial(pool, rest.quotient), axes, i + 1)) return true;
  }
  return false;
}

bool unit(ir::Expr stride) { return stride->is_constant(1); }

}  // namespace

std::optional<MatrixLayout> matrix_layout(ir::ExprPool& pool, ir::Expr offset,
                                          const std::vector<ir::Expr>& batch,
                                          const std::vector<ir::Expr>& rows,
                                          const std::vector<ir::Expr>& columns) {
  std::vector<ir::Expr> axes = batch;
  axes.insert(axes.end(), rows.begin(), rows.end());
  axes.insert(axes.end(), columns.begin(), columns.end());
  auto parts = strided(pool, offset, axes);
  if (!parts || !is_size(parts->base)) return std::nullopt;
  for (ir::Expr stride : parts->strides) {
    if (!is_size(stride) || !forward_stride(pool, stride, axes)) return std::nullopt;
  }
  auto slice = [&](size_t begin, size_t count) {
    return std::vector<ir::Expr>(parts->strides.begin() + static_cast<long>(begin),
                                 parts->strides.begin() + static_cast<long>(begin + count));
  };
  MatrixLayout layout{parts->base, collapsed(pool, batch, slice(0, batch.size())),
                      collapsed(pool, rows, slice(batch.size(), rows.size())),
                      collapsed(pool, columns, slice(batch.size() + rows.size(), columns.size()))};
  if (!layout.batch || !layout.row || !layout.column) return std::nullopt;
  return layout;
}

bool library_takes(ir::ExprPool& pool, MatrixLayout& layout, ir::Expr rows, ir::Expr columns) {
  if (rows->is_constant(1) && !unit(layout.column)) {
    layout.row = pool.integer(1);
    return proved_nonnegative(pool.sub(layout.column, pool.integer(1)), ir::kWhereElementsExist);
  }
  if (rows->is_constant(1)) layout.row = columns;
  if (columns->is_constant(1) && !unit(layout.column)) {
    layout.column = unit(layout.row) ? rows : pool.integer(1);
  }
  if (unit(layout.column))
    return proved_less_equal(pool, columns, layout.row, ir::kWhereElementsExist);
  return unit(layout.row) && proved_less_equal(pool, rows, layout.column, ir::kWhereElementsExist);
}

std::optional<TmaView> matrix_view(ir::ExprPool& pool, const BufferRef& buffer, DType dtype,
                                   ir::Expr offset, ir::Expr inner, ir::Expr lines, ir::Expr line,
                                   ir::Expr batches, ir::Expr batch, std::vector<int> box) {
  constexpr int64_t kUnit = 8;  // elements of 16 bytes
  const auto multiple = [&](ir::Expr size) {
    return pool.floormod(size, pool.integer(kUnit))->is_constant(0);
  };
  if (!multiple(offset) || !multiple(line) || !multiple(batch)) {
    return std::nullopt;
  }
  if (!proved_less(pool, pool.integer(0), line, ir::kWhereElementsExist)) return std::nullopt;
  const bool shared = batch->is_constant(0) || batches->is_constant(1);
  if (!shared && !proved_less(pool, pool.integer(0), batch, ir::kWhereElementsExist))
    return std::nullopt;
  TmaView view;
  view.buffer = buffer;
  view.dtype = dtype;
  view.offset = offset;
  view.dims = {inner, lines, shared ? pool.integer(1) : batches};
  view.strides = {line, shared ? line : batch};
  view.box = std::move(box);
  return view;
}

}  // namespace redfuser::codegen
