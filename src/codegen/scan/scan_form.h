// Running reductions as the scan kernels see them (src/device/scan.cuh).
#pragma once

#include <optional>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// value[offset] = body for every line and every position of `axis`; in the body the Leaf `running`
// stands for the running value, of `element` from the line's first position on.
struct ScanForm {
  ir::ValueId value;
  std::vector<ir::Expr> lines;  // axes but the next two, outermost first; neighbours merged
  ir::Expr axis = nullptr;
  // The line axis whose neighbours are adjacent in memory; null where elements of a line are.
  ir::Expr across = nullptr;
  ir::Reduction reduction;
  bool reverse = false, exclusive = false;
  ir::Expr running = nullptr;
  ir::Expr element = nullptr, body = nullptr, offset = nullptr;  // flat
  std::string comment;                                           // equations

  ir::Expr length() const { return axis->extent(); }
  DType state() const { return running->dtype; }
  // The axis whose neighbours are adjacent.
  ir::Expr inner() const { return across ? across : axis; }
};

// nullopt unless the body's one reduction runs along an axis of the result.
std::optional<ScanForm> scan_form(StepBuilder& builder, const fuse::ReduceStep& step);

}  // namespace redfuser::codegen
