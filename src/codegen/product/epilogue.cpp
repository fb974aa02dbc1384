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
  emitter_.set_fast_math(size_of(builder_.dtype_of(group_.epilogue().value)) == 2);
  const std::string read = width_ > 1 ? read_text() : "";
  const std::string finish = finish_text();
  emitter_.line(
      fmt::format("product.multiply({},\n[&](int batch, long long first, long long valid, bool "
                  "vector) {{\n{}}},\n"
                  "[&](int batch, const ProductLines<Tile>& lines, bool vector) {{\n{}}});",
                  width_ > 1 ? group_.all_aligned_text(width_) : "false", read, finish));
}

// The variables are the kernel's.
std::string ProductText::read_text() {
  std::string declared;
  emitter_.open();
  bind_coordinates(emitter_, step_.batch, "batch");
  group_.load(width_, false, &declared);
  std::string text = emitter_.close();
  if (!declared.empty()) emitter_.line(declared.substr(0, declared.size() - 1));
  return text;
}

std::string ProductText::finish_text() {
  emitter_.open();
  bind_coordinates(emitter_, step_.batch, "batch");
  emitter_.open();
  bind_coordinates(emitter_, group_.rows(), "row");
  group_.load(width_, true);
  if (width_ == 1) group_.load(width_, false);
  group_.write(width_, [](size_t i) { return fmt::format("sums[{}][v]", i); });
  const std::string group = emitter_.close();
  emitter_.line(
      fmt::format("lines.each_group([&](long long row, long long first, long long valid, const "
                  "float (&sums)[{}][{}]) "
                  "{{\n{}}});",
                  calls_.size(), width_, group));
  return emitter_.close();
}

}  // namespace redfuser::codegen
