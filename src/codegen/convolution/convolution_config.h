// Configurations of the kernel of convolutions, and their times.
#pragma once

#include <vector>

#include "codegen/convolution/convolution_form.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

inline constexpr const char* kConvolutionFamily = "convolution";

// As ConvolutionTile of src/device/convolution/convolution_tile.cuh.
struct ConvolutionShape {
  int positions, filters;
  int position_warps, filter_warps;
  int pieces, stages;  // pieces: of 16 bytes, of the contracted axis in a stage
  int registers[2];    // of a thread for images, where an operand has one part and two

  int threads() const { return 32 * position_warps * filter_warps; }
  // Elements of the contracted axis in a stage.
  int depth(DType dtype) const { return pieces * 16 / static_cast<int>(size_of(dtype)); }
  int shared_bytes() const;
  // Blocks that a multiprocessor runs at once, for operands of so many parts and dimensions.
  int resident(const Target& target, int parts, int spatial) const;
};

struct ConvolutionConfig {
  int positions = 64, filters = 64;  // of a tile
  int blocks = 1;                    // of a cluster, which divide the contracted axis

  Parameters parameters() const {
    return {{"positions", positions}, {"filters", filters}, {"blocks", blocks}};
  }
  static ConvolutionConfig of(const KernelConfig& choice);
  // InternalError for a tile that does not exist.
  const ConvolutionShape& shape() const;
};

struct ConvolutionCounts {
  DType dtype;
  int parts, spatial;  // as of ConvolutionForm
  double groups, positions, filters, depth;
  double bytes;  // of the input, the filters and the result

  // Bytes of images grow with the positions.
  ConvolutionCounts with_positions(double count) const;
};
// Sizes that are not known are nominal.
ConvolutionCounts convolution_counts(ir::ExprPool& pool, const ConvolutionForm& form,
                                     const KnownSizes& sizes);

// Microseconds at these sizes, its launch included.
double convolution_time(const ConvolutionConfig& config, const ConvolutionCounts& counts,
                        const Target& target);
// All configurations that fit, the fastest first by that estimate.
std::vector<Candidate> convolution_choices(const ConvolutionCounts& counts, const Target& target);

}  // namespace redfuser::codegen
