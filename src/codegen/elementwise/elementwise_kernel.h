// Elementwise kernels: a thread computes one element or several adjacent ones, or a warp one.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// One output of an elementwise kernel: value[offset] = body, both over the kernel's axes.
struct Store {
  int64_t value;
  ir::Expr body;    // flat
  ir::Expr offset;  // Int64
};

// Adds a kernel that computes the stores at every point of the axes. `name` is the family's.
void add_map(StepBuilder& builder, const std::string& name, std::vector<ir::Expr> axes,
             std::vector<Store> stores, const std::string& comment);

// Makes axis `outer` and the next one a single axis if every offset and read allows it; false, with
// nothing changed, if not.
bool merge_pair(ir::ExprPool& pool, std::vector<ir::Expr>& axes, std::vector<Store>& stores,
                size_t outer);

// Size products that must be multiples of `unit` for the offset to be one, whatever its axes.
std::vector<ir::Expr> offset_units(ir::ExprPool& pool, ir::Expr offset);

// Declares the coordinates of `axes` from the linear `index` (row-major).
void bind_coordinates(Emitter& emitter, const std::vector<ir::Expr>& axes,
                      const std::string& index);

void generate_map(StepBuilder& builder, const fuse::MapStep& step);
void generate_reduce(StepBuilder& builder, const fuse::ReduceStep& step);

}  // namespace redfuser::codegen
