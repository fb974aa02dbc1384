// Maps whose operands lie along another axis than their results: tiles in shared memory turn them
// (device/maps/tiled_map.cuh).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "codegen/elementwise/map_body.h"

namespace redfuser::codegen {

inline constexpr const char* kTiledMapFamily = "tiled_map";
inline constexpr int kTiledThreads = 128;  // of a block

// A map's shape, and the axes of its tiles, innermost last: those along the results, whose elements
// are adjacent in row-major order, and those across, where the elements are that tiles turn.
struct TiledMap {
  MapShape shape;
  std::vector<ir::Expr> along, across;
  std::vector<ir::Expr> reads;
  // Of the kernel's MapTile.
  int width, columns, along_side, across_side;

  // Joins axes to those along and across, where these have few points, and sets the tile's sides.
  void set_sides(const KernelText& kernel);
  // The numbers of points along and across.
  ir::Expr points_along(ir::ExprPool& pool) const;
  ir::Expr points_across(ir::ExprPool& pool) const;
  // Of the operands' tiles in static shared memory.
  int shared_bytes() const;
  // Microseconds by estimate.
  double time(const StepBuilder& builder, const KnownSizes& sizes) const;
  // Adds the kernel, which has no block where `when` does not hold.
  void add(StepBuilder& builder, const std::string& equations, ir::Expr when) const;

 private:
  std::vector<ir::Expr> lines() const;  // the other axes
};

// The tiles of a simplified shape, or why it has none.
std::variant<TiledMap, std::string> tiled_map(const KernelText& kernel, MapShape shape);

}  // namespace redfuser::codegen
