// Elementwise kernels: a thread computes one element or several adjacent ones, or a warp one.
#pragma once

#include <string>
#include <vector>

#include "codegen/elementwise/map_shape.h"

namespace redfuser::codegen {

// Adds a kernel that computes the stores at every point of the axes, where `when` holds (null:
// everywhere). `name` is the family's.
void add_map(StepBuilder& builder, const std::string& name, std::vector<ir::Expr> axes,
             std::vector<Store> stores, const std::string& comment, ir::Expr when = nullptr);

// Declares the coordinates of `axes` from the linear `index` (row-major). `small`: it is known to
// be one of less than 2^31 points (has_small_index).
void bind_coordinates(Emitter& emitter, const std::vector<ir::Expr>& axes, const std::string& index,
                      bool small = false);
// Whether points of these axes are known to be less than 2^31.
bool has_small_index(ir::ExprPool& pool, const std::vector<ir::Expr>& axes);

// The outputs of a map as stores: of what a run appends, where an output's memory has room. The
// equations are comments, a line for each output.
struct MapStores {
  MapShape shape;
  std::string equations;
};
MapStores stores_of(StepBuilder& builder, const fuse::MapStep& step);

// Where a block computes a map: at `place` of an axis, with `loop` as an axis of its own; null:
// at one place.
struct MapPlace {
  ir::Expr axis, place, loop;
};
// The same at these places alone, and everywhere on other axes.
MapStores stores_of(StepBuilder& builder, const fuse::MapStep& step,
                    const std::vector<MapPlace>& places);

}  // namespace redfuser::codegen
