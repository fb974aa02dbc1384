#include "codegen/core/tma_tile.h"

#include <fmt/format.h>

namespace redfuser::codegen {

TmaView TmaTile::view(const TmaOperand& operand) const {
  TmaView view = operand.view;
  view.box = {kSlabColumns, rows};
  view.box.resize(view.dims.size(), 1);
  return view;
}

std::vector<std::string> declare_coordinates(Emitter& emitter, const TmaOperand& operand) {
  std::vector<std::string> names;
  for (ir::Expr coordinate : operand.coordinates) {
    names.push_back(emitter.fresh("c"));
    emitter.line(fmt::format("const int {} = {};", names.back(), as_int(emitter.emit(coordinate))));
  }
  return names;
}

}  // namespace redfuser::codegen
