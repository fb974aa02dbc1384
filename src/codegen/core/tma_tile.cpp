#include "codegen/core/tma_tile.h"

#include <fmt/format.h>

namespace redfuser::codegen {

TmaView TmaTile::view(const TmaOperand& operand) const {
  TmaView view = operand.view;
  view.box = {kSlabColumns, rows};
  view.box.resize(view.dims.size(), 1);
  return view;
}

std::vector<std::string> coordinates(Emitter& emitter, const TmaOperand& operand) {
  std::vector<std::string> texts;
  for (ir::Expr coordinate : operand.coordinates) {
    texts.push_back(as_int(emitter.emit(coordinate)));
  }
  return texts;
}

}  // namespace redfuser::codegen
