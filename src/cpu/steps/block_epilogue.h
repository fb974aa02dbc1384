// The epilogue of products at fixed sizes: a tile program over blocks of their results.
#pragma once

#include <vector>

#include "cpu/steps/growing_extents.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

class BlockEpilogue {
 public:
  // The axes of the results, specialised: rows m by columns n in each batch.
  struct Axes {
    const std::vector<ir::Expr>&batch, &m, &n;
  };
  // out[indices], of sizes `dims`.
  struct Output {
    DType dtype;
    Dims dims;
    std::vector<ir::Expr> indices;
  };
  struct Block {
    int64_t batch = 0, row = 0, column = 0, rows = 1, columns = 1;
  };
  // The results of a block in memory: of each product row by row, `stride` elements apart, each
  // product `bytes` after the one before.
  struct Results {
    char* data = nullptr;
    int64_t stride = 0, bytes = 0;
  };

  // Compiles `body`, over Leaf Product i < `products`, which are of `dtype`, and the store of the
  // program's output 0. `growing`: of growing sizes, with their axis; else null.
  void build(ir::ExprPool& pool, TileBuilder& builder, const Axes& axes, ir::Expr body,
             int products, DType dtype, const Output& output, GrowingExtents* growing = nullptr);
  // Lays the program out for blocks of at most so many rows and columns.
  void set_block(TileProgram& program, int64_t rows, int64_t columns) const;
  // Computes the output's elements of a block.
  void run(const TileProgram& program, TileContext& machine, const Block& block,
           const Results& results) const;

 private:
  DType dtype_ = DType::Float32;
  std::vector<std::vector<int64_t>> batch_points_;
  std::vector<RegisterId> products_;  // by their leaf's number
  int scope_ = kNoScope;
};

bool is_product(ir::Expr e);  // a Leaf Product

}  // namespace redfuser::cpu
