// Maps whose results have another order of axes than some operands: boxes of several axes, whose
// operands pass through shared memory (device/maps/box_map.cuh).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "codegen/elementwise/map_body.h"

namespace redfuser::codegen {

inline constexpr const char* kBoxMapFamily = "box_map";
inline constexpr int kBoxThreads = 256;  // of a block

// A box's part of an axis: `place` of `points`.
struct BoxAxis {
  ir::Expr place;
  int64_t points;
  ir::Expr left;  // points from the part's first one to the axis' end; null: the part is whole
};

// An operand in shared memory.
struct BoxRead {
  ir::Expr read;
  std::vector<BoxAxis> axes;  // in the order of its memory, innermost last
  int unit = 1;               // adjacent elements that a thread loads at once
};

// The cycles of shared memory's banks for a box, and the instructions of its threads.
struct BoxCost {
  double wavefronts = 0, instructions = 0;
};

// A map over axes outside of boxes, a block for each point, and those inside. Its points beyond an
// axis' end do not exist.
struct BoxMap {
  MapShape shape;
  std::vector<ir::Expr> outside;
  // Inside, in row-major order of the results: in those along, points are adjacent.
  std::vector<BoxAxis> rows, along;
  std::vector<BoxRead> reads;
  int width = 1, pitch = 1;  // of the kernel's MapBox
  BoxCost cost;
  double stored_run = 0, read_run = 0;  // bytes of a box that follow each other in memory

  int64_t row_count() const;
  int64_t points_along() const;
  // Elements from the row of one point of an axis to the next one's in shared memory.
  int64_t step_of(ir::Expr place) const;
  // Sets the operands' units, the width and the pitch, for the least cost.
  void set_pitch(const KernelText& kernel);
  // Of the operands' boxes in static shared memory.
  int64_t shared_bytes() const;
  // Microseconds by estimate.
  double time(const StepBuilder& builder, const KnownSizes& sizes) const;
  // Adds the kernel, which has no block where `when` does not hold.
  void add(StepBuilder& builder, const std::string& equations, ir::Expr when) const;
};

// Of a simplified shape; or why boxes do not take it.
std::variant<BoxMap, std::string> box_map(const KernelText& kernel, MapShape shape);

}  // namespace redfuser::codegen
