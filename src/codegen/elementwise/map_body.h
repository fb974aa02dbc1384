// The text of an elementwise kernel, or of one of several maps that a kernel's blocks share.
#pragma once

#include <string>

#include "codegen/elementwise/map_shape.h"

namespace redfuser::codegen {

inline constexpr int kMapThreads = 256;  // of a block

// The text's names of a block's number, and of how many there are.
struct BlockNames {
  std::string number = "blockIdx.x", count = "gridDim.x";
};

struct MapBody {
  MapShape shape;
  std::string text;
  ir::Expr blocks;     // that give each thread one point, group of points, or share of one
  int lanes = 1;       // threads for each point
  int registers = 32;  // of a thread, by estimate

  // At these sizes.
  select::Work work(const StepBuilder& builder, const KnownSizes& sizes) const;
};

// Threads that a multiprocessor runs at a time, where each has so many registers.
double resident_threads(int registers);

// Computes the stores of a simplified shape at every point of its axes, whatever the number of
// blocks: a thread computes one element or several adjacent ones, or a warp one.
MapBody map_body(KernelText& kernel, MapShape shape, const BlockNames& names = {});

}  // namespace redfuser::codegen
