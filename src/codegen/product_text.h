// The text of src/device/product.cuh's kernel: its loads (product_kernel.cpp) and the epilogue of
// its tiles (product_finish.cpp).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/emitter.h"
#include "codegen/product_kernel.h"

namespace redfuser {

class ProductText {
 public:
  ProductText(StepBuilder& builder, const ProductStep& step, const ProductCall& call,
              const ProductEpilogue& epilogue)
      : builder_(builder),
        pool_(builder.pool()),
        step_(step),
        call_(call),
        epilogue_(epilogue),
        kernel_(builder.kernel()),
        emitter_(kernel_) {}

  // nullopt for operands that the copy engine cannot fetch.
  std::optional<KernelLaunch> launch(const std::string& comment);

  // As src/device/product.cuh has them.
  static constexpr int kTileRows = 128, kTileColumns = 256, kDepth = 64, kStages = 3;
  static constexpr int kStagedBytes = kTileRows * (kTileColumns + 8) * 2;
  // Elements of 16 bits that are read and written together.
  static constexpr int kWidth = 8;
  // Whether groups of kWidth elements begin at every multiple of `size`.
  static bool multiple(ExprPool& pool, Expr size);

 private:
  Expr rows() { return ceil_div(pool_, call_.m, kTileRows); }
  Expr columns() { return ceil_div(pool_, call_.n, kTileColumns); }
  Expr tile_count() { return pool_.mul(call_.batch, pool_.mul(rows(), columns())); }
  // One axis for the rows where the epilogue addresses memory by their number.
  void merge_rows();
  void load(const TensorView& a, const TensorView& b);

  // The sums are rounded as the graph's product is.
  std::string_view staged_type() const;
  // Lines of the warp's, one after the other; a thread takes groups of consecutive columns, as an
  // elementwise kernel has them.
  void finish();
  void in_lines(int unroll, const std::function<void()>& write);
  void in_parts(const std::function<void()>& write);
  // The thread's first column in a tile.
  std::string part() const;
  std::string first_column(std::string_view beyond);
  // What only the columns of a tile determine is read once, as soon as its sums are staged.
  std::string read_columns();
  void write_elements(const std::string& target, Expr base, DType out);
  // `body`: of lines `from` to `end` of a tile's.
  void add_tiles(const std::string& columns, const std::string& body);
  std::string stage() const;
  // Of what changes from row to row, or of the rest. Variables are declared here, or in `declared`.
  void load_groups(bool with_row, std::string* declared = nullptr);
  bool depends_on_row(Expr e) const;
  // The offset at column 0, if columns are consecutive elements.
  Expr first_of(Expr offset);
  void require(const std::string& buffer, Expr base);

  // The tiles of the block, for each of its roles.
  static constexpr const char* kTiles =
      "for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {\n"
      "const TilePlace place = place_tile(tile, rows, columns);\n";

  StepBuilder& builder_;
  ExprPool& pool_;
  const ProductStep& step_;
  const ProductCall& call_;
  ProductEpilogue epilogue_;
  std::vector<Expr> rows_;
  KernelText kernel_;
  Emitter emitter_;
  bool by_rows_ = false;
  int width_ = kWidth;
  std::vector<std::pair<Expr, std::string>> loaded_;
  std::vector<std::string> aligned_;
  std::vector<Expr> units_;
};

}  // namespace redfuser
