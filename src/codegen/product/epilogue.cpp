#include <fmt/format.h>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/product/product_text.h"

namespace redfuser::codegen {
namespace {

bool whole(ir::Expr size, int tile) { return size->is_constant() && size->integer % tile == 0; }

}  // namespace

std::string ProductText::tile_text() const {
  const DType sum = group_.epilogue().products[0]->dtype;
  return fmt::format("using Tile = ProductTile<{}, {}, {}, {}, {}, {}, {}>;\n",
                     storage_type(call_.dtype),
                     storage_type(size_of(sum) == 2 ? sum : DType::Float32), calls_.size(), width_,
                     by_rows_, whole(call_.m, kTileRows), whole(call_.n, tile_columns()));
}

void ProductText::multiply() {
  emitter_.set_fast_math(size_of(group_.dtype()) == 2);
  std::string declared;
  emitter_.open();
  bind_coordinates(emitter_, step_.batch, "batch");
  if (width_ == widest()) group_.load_columns(declared);
  const std::string read = emitter_.close();
  // The values are the kernel's.
  if (!declared.empty()) emitter_.line(declared.substr(0, declared.size() - 1));
  emitter_.open();
  bind_coordinates(emitter_, step_.batch, "batch");
  const std::string group = group_.finish(false);
  emitter_.line(
      fmt::format("lines.each_group([&](long long row, const Group<{0}>& group, const float "
                  "(&sums)[{1}][{0}]) {{\n"
                  "{2}}});",
                  width_, calls_.size(), group));
  const std::string finish = emitter_.close();
  emitter_.line(
      fmt::format("product.multiply({},\n[&](int batch, const Group<{}>& group) {{\n{}}},\n"
                  "[&](int batch, const ProductLines<Tile>& lines) {{\n{}}});",
                  width_ > 1 ? group_.condition(width_) : "false", width_, read, finish));
}

}  // namespace redfuser::codegen
