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

bool GrowingExtents::is_exact(std::initializer_list<const std::vector<ir::Expr>*> all,
                              std::initializer_list<const std::vector<ir::Expr>*> counted) const {
  const auto stays = [&](ir::Expr axis) { return axis_.extent(axis) == nullptr; };
  const auto stay = [&](const std::vector<ir::Expr>* axes) {
    return std::all_of(axes->begin(), axes->end(), stays);
  };
  return std::all_of(all.begin(), all.end(), stay) &&
         std::all_of(counted.begin(), counted.end(), [&](const std::vector<ir::Expr>* axes) {
           return axes->empty() || std::all_of(axes->begin() + 1, axes->end(), stays);
         });
}

int64_t GrowingExtents::Count::at(int64_t length) const {
  if (outermost_ == nullptr) return inner_;
  const int64_t lengths[] = {length};
  return inner_ * evaluate_size(outermost_, lengths);
}

}  // namespace redfuser::cpu
