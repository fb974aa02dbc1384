// The configurations of the kernel of thin products, with their estimated times.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/product/thin_form.h"

namespace redfuser::codegen {

inline constexpr const char* kThinProductFamily = "product_thin";

struct ThinConfig {
  int lines = 8;   // of the thin matrix, as padded
  int wide = 64;   // lines of a wide matrix that a block multiplies
  int warps = 8;   // of a block
  int blocks = 1;  // of a cluster, which divide the contracted axis
  int bits = 0;    // of a code; 0: the wide matrices are read as floats

  Parameters parameters() const {
    Parameters all = {{"lines", lines}, {"wide", wide}, {"warps", warps}, {"blocks", blocks}};
    if (bits > 0) all.emplace_back("bits", bits);
    return all;
  }
};
ThinConfig thin_config(const KernelConfig& choice);
// Whether the configuration reads codes, so that the matrices as floats may be nowhere on the GPU.
bool reads_codes(const KernelConfig& choice);

// Elements of the contracted axis that a warp has in flight, as in
// src/device/product/thin_tile.cuh.
int thin_ahead(const ThinForm& form, const ThinConfig& config);
// Static shared memory of a block.
int thin_static_bytes(const ThinForm& form, const ThinConfig& config);

// Where a kernel for `padded` lines computes the product: `lines` is at most that, and more than
// the next smaller kernel has.
struct ThinClass {
  int padded;
  ir::Expr when;  // a bool over sizes
};
std::vector<ThinClass> thin_classes(ir::ExprPool& pool, const ThinForm& form);

// Microseconds for `lines` thin lines; HUGE_VAL if sizes are not known.
double thin_time(const ThinForm& form, const ThinConfig& config, double lines,
                 const KnownSizes& sizes, const Target& target);
// All configurations for `padded` lines, the fastest first by that estimate. Empty if a size is not
// known or zero, or if the sums of a thread would fill its registers.
std::vector<Candidate> thin_choices(const ThinForm& form, int padded, double lines,
                                    const KnownSizes& sizes, const Target& target);

}  // namespace redfuser::codegen
