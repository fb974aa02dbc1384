// Writes the text of the kernel of src/device/product/product_loop.cuh: the operands
// (product_kernel.cpp) and the epilogue's functors (epilogue.cpp).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/core/emitter.h"
#include "codegen/matrix/group_epilogue.h"
#include "codegen/product/product_kernel.h"

namespace redfuser::codegen {

class ProductText {
 public:
  ProductText(StepBuilder& builder, const fuse::ProductStep& step,
              const std::vector<ProductCall>& calls, const ProductEpilogue& epilogue,
              const ProductWindows* windows = nullptr)
      : builder_(builder),
        pool_(builder.pool()),
        step_(step),
        calls_(calls),
        call_(calls[0]),
        windows_(windows),
        kernel_(builder.kernel()),
        emitter_(kernel_),
        group_(emitter_, step, epilogue) {}

  // nullopt if TMA cannot load the operands.
  std::optional<KernelLaunch> launch(const std::string& comment);

  // The same as in src/device/product/product.cuh.
  static constexpr int kTileRows = 128, kTileColumns = 256, kDepth = 64, kStages = 3;
  // The same as in src/device/product/product_loop.cuh.
  static constexpr int kThreads = 384;
  static constexpr int kStagedBytes = kTileRows * (kTileColumns + 8) * 2;
  // 16-bit elements per vector access.
  static constexpr int kWidth = 8;
  // Columns of each of `products` in a tile; 0 if the tile cannot be divided.
  static int columns_of_each(size_t products);
  // Of an access, as wide as rows of so many columns are aligned.
  static int width_of(ir::ExprPool& pool, ir::Expr columns);

 private:
  ir::Expr rows() { return ceil_div(pool_, call_.m, kTileRows); }
  // Columns of a group, if a lane has one group of each line.
  int widest() const { return kWidth / static_cast<int>(calls_.size()); }
  int tile_columns() const { return columns_of_each(calls_.size()); }
  ir::Expr columns() { return ceil_div(pool_, call_.n, tile_columns()); }
  ir::Expr tile_count() { return pool_.mul(call_.batch, pool_.mul(rows(), columns())); }
  // The operands' tensor maps: the rows', then the columns' of each product; empty if TMA cannot
  // load one.
  std::vector<TmaView> views();
  std::optional<TmaView> rows_view();
  std::optional<TmaView> columns_view(const ProductCall& call);
  void load(const std::vector<TmaView>& views);

  void multiply();
  std::string tile_text() const;

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::ProductStep& step_;
  const std::vector<ProductCall>& calls_;
  const ProductCall& call_;        // the first
  const ProductWindows* windows_;  // null: of matrices
  KernelText kernel_;
  Emitter emitter_;
  GroupEpilogue group_;
  bool by_rows_ = false;
  int width_ = kWidth;
};

}  // namespace redfuser::codegen
