// Maps whose points along one axis share much of their work, as the channels of images that are
// sampled at the same places do: a thread computes a strip of points of that axis.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "codegen/elementwise/map_body.h"

namespace redfuser::codegen {

inline constexpr const char* kStripMapFamily = "strip_map";

struct StripMap {
  MapShape shape;
  ir::Expr axis;                 // of the strips, one of the shape's
  int64_t points = 1;            // of a strip
  std::vector<ir::Expr> shared;  // what the points of a strip have in common

  // Microseconds by estimate.
  double time(const StepBuilder& builder, const KnownSizes& sizes) const;
  // Adds the kernel, which has no block where `when` does not hold.
  void add(StepBuilder& builder, const std::string& equations, ir::Expr when) const;
};

// Of a simplified shape; or why strips do not take it.
std::variant<StripMap, std::string> strip_map(const KernelText& kernel, MapShape shape);

}  // namespace redfuser::codegen
