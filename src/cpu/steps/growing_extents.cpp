#include "cpu/steps/growing_extents.h"

#include <algorithm>

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
  result.outermost_ = axis_.extent(axes.front());
  const auto others = std::span(axes).subspan(result.outermost_ == nullptr ? 0 : 1);
  result.inner_ = extent_of(others);
  return result;
}

bool GrowingExtents::is_exact(std::initializer_list<const std::vector<ir::Expr>*> counted) const {
  std::vector<ir::Expr> outermost;
  for (const std::vector<ir::Expr>* axes : counted) {
    if (!axes->empty()) outermost.push_back(axes->front());
  }
  return axis_.all_grown_in(outermost);
}

bool GrowingExtents::grows_inside(const std::vector<ir::Expr>& axes) const {
  return axes.size() > 1 && std::any_of(axes.begin() + 1, axes.end(), [&](ir::Expr axis) {
           return axis_.extent(axis) != nullptr;
         });
}

int64_t GrowingExtents::Count::at(int64_t length) const {
  if (outermost_ == nullptr) return inner_;
  const int64_t lengths[] = {length};
  return inner_ * evaluate_size(outermost_, lengths);
}

}  // namespace redfuser::cpu
