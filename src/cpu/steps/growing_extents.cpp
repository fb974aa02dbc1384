#include "cpu/steps/growing_extents.h"

#include "cpu/tile/specialize.h"
#include "ir/evaluate.h"

namespace redfuser::cpu {

void GrowingExtents::place(std::initializer_list<std::vector<ir::Expr>*> lists) {
  for (std::vector<ir::Expr>* list : lists) axis_.place(*list);
}

void GrowingExtents::set_axes(TileBuilder& builder, const std::vector<ir::Expr>& rows,
                              const std::vector<ir::Expr>& columns) {
  slot_ = builder.set_outer(axis_.axis());
  rows_ = count(rows);
  columns_ = count(columns);
}

GrowingExtents::Count GrowingExtents::count(const std::vector<ir::Expr>& axes) const {
  Count result;
  if (axes.empty()) return result;
  result.outermost = axis_.extent(axes.front());
  const size_t others = result.outermost == nullptr ? 0 : 1;
  result.inner = extent_of(std::span(axes).subspan(others));
  return result;
}

int64_t GrowingExtents::Count::at(int64_t length) const {
  if (outermost == nullptr) return inner;
  const int64_t lengths[] = {length};
  return inner * evaluate_size(outermost, lengths);
}

}  // namespace redfuser::cpu
