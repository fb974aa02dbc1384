// One kernel of several maps: each block belongs to one of them.
#pragma once

#include <vector>

#include "codegen/maps/map_forms.h"

namespace redfuser::codegen {

inline constexpr const char* kMapsFamily = "maps";

struct MapsKernel {
  std::vector<MapBody> parts;
  std::vector<std::vector<MapForm>> forms;  // by part, of a launch of its own
  KernelLaunch launch;                      // its grid has the parts' blocks one after the other

  // Of a thread, by estimate: the most of a part.
  int registers() const;
  // Microseconds by estimate: of the parts beside each other, and of a launch for each.
  double time(const StepBuilder& builder, const KnownSizes& sizes) const;
  double time_apart(const StepBuilder& builder, const KnownSizes& sizes) const;
};

// The kernel of at least one step. No step reads or writes memory that another one writes.
MapsKernel maps_kernel(StepBuilder& builder, const std::vector<const fuse::MapStep*>& steps);

}  // namespace redfuser::codegen
