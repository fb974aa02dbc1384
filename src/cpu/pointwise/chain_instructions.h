// The instructions of chains of pointwise operations in tile programs.
#pragma once

#include <optional>
#include <vector>

#include "cpu/tile/tile_instructions.h"

namespace redfuser::cpu {

// The type in which a chain reads or writes elements of this storage; Own for Undefined. Without a
// value for types that chains do not convert.
std::optional<ChainType> chain_type(DType storage);

// Operations on floats, each on the result of the one before: those of `first` and the operands of
// the links, which are the other registers read, in order.
struct PointwiseChain final : Instruction {
  struct Link {
    ChainOp op;
    RegisterId operand;  // kNoRegister of a unary operation
  };
  PointwiseChain(RegisterId out, RegisterId first, std::vector<Link> links);
  void run(TileContext& machine) const override;
  RegisterId first;
  std::vector<Link> links;
};

// A chain of float32 whose results, by row, join accumulators: by the largest, the least and the
// sum of a row. The results are written to `value` only if they are `kept`.
struct FoldedChain final : Instruction {
  FoldedChain(RegisterId value, RegisterId first, std::vector<PointwiseChain::Link> links,
              bool kept);
  // Max, Min or Sum, once each. The accumulator has shape Rows, or Scalar for a row of columns.
  void add(ReduceOp op, RegisterId accumulator);
  void run(TileContext& machine) const override;
  RegisterId value, first;
  std::vector<PointwiseChain::Link> links;
  bool kept;
  RegisterId accumulators[kReduceOps];
};

}  // namespace redfuser::cpu
