// Configurations of the kernel of depthwise convolutions, where every channel has one filter
// (src/device/convolution/depthwise.cuh), and their times.
#pragma once

#include "codegen/convolution/convolution_form.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

inline constexpr const char* kDepthwiseFamily = "depthwise";

// What a thread computes: `width` channels of a tile of places.
struct DepthwiseConfig {
  int width = 8, rows = 1, columns = 4;

  Parameters parameters() const { return {{"width", width}, {"rows", rows}, {"columns", columns}}; }
  static DepthwiseConfig of(const KernelConfig& choice);
};

// The form, or why there is none.
std::variant<ConvolutionForm, std::string> depthwise_form(const ConvolutionStep& convolution);

// All configurations for these channels and this kernel, the fastest first by estimate; unknown
// sizes are nominal.
std::vector<Candidate> depthwise_choices(const ConvolutionForm& form, const KnownSizes& sizes,
                                         const Target& target);

}  // namespace redfuser::codegen
