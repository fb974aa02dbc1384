// The kernels that may compute a map.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/elementwise/map_body.h"

namespace redfuser::codegen {

inline constexpr const char* kMapFamily = "map";

struct MapForm {
  std::string family;
  std::string refusal;  // why it does not compute the map; empty: it does
  // Microseconds by estimate.
  std::function<double(const StepBuilder&, const KnownSizes&)> time = {};
  // Adds the kernel, with the equations as a comment, where `when` holds.
  std::function<void(StepBuilder&, const std::string& equations, ir::Expr when)> add = {};
};

// Of a simplified shape; the kernel along the results is the first.
std::vector<MapForm> map_forms(const StepBuilder& builder, const MapShape& shape);

// The one that takes the least time; the first one where none computes the map.
size_t least_form(const std::vector<MapForm>& forms, const StepBuilder& builder,
                  const KnownSizes& sizes);

}  // namespace redfuser::codegen
