// The text of an elementwise kernel, or of one of several maps that a kernel's blocks share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/elementwise/map_shape.h"

namespace redfuser::codegen {

inline constexpr int kMapThreads = 256;  // of a block
inline constexpr const char* kMapHeader = "device/maps/map.cuh";

// Those that share a map.
struct MapThreads {
  std::string share = "all_blocks()";  // the Share of src/device/maps/map.cuh, as the text names it
  int of_block = kMapThreads;
  int most = 16;  // adjacent points that a thread computes together
  // The names of other axes than the shape's, which the caller has declared.
  std::vector<std::pair<ir::Expr, std::string>> coordinates = {};
};

struct MapBody {
  MapShape shape;
  std::string text;
  ir::Expr items = nullptr;   // points, or groups of points that a thread computes together
  ir::Expr blocks = nullptr;  // that share the items
  int lanes = 1;              // threads for each point
  int registers = 32;         // of a thread, by estimate

  // At these sizes.
  select::Work work(const StepBuilder& builder, const KnownSizes& sizes) const;
  // Microseconds of a kernel of its own, by estimate.
  double time(const StepBuilder& builder, const KnownSizes& sizes) const;
};

// Adjacent points that a thread computes together. Bytes that are only moved fill a vector; others
// are computed as words.
int vector_width(const KernelText& kernel, const MapShape& shape);

// Whether every result is rounded to a float of 16 bits.
bool rounds_to_16_bits(const KernelText& kernel, const MapShape& shape);

// Threads that a multiprocessor runs at a time, where each has so many registers.
double resident_threads(int registers);

// Computes the stores of a simplified shape at every point of its axes, whatever the number of
// threads: one computes one element or several adjacent ones, or a warp one. The text uses
// kMapHeader.
MapBody map_body(KernelText& kernel, MapShape shape, const MapThreads& threads = {});

}  // namespace redfuser::codegen
