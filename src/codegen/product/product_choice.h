// The choices for a matrix product: the algorithms of the library, or a generated kernel.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "codegen/cluster_product/cluster_config.h"
#include "codegen/product/product_kernel.h"
#include "codegen/product/thin_config.h"

namespace redfuser::codegen {

// A kernel of ours that takes a product in place of the library, and what it refuses.
struct OwnProduct {
  ProductFamily family;
  const char* name;
  const char* refusal;
};
inline constexpr OwnProduct kOwnProducts[] = {
    {ProductFamily::Kernel, kProductKernelFamily,
     "it takes matrices of 16 bits that TMA reads, on sm_90"},
    {ProductFamily::Thin, kThinProductFamily, "neither matrix has few lines of a known length"},
    {ProductFamily::Cluster, kClusterProductFamily,
     "it takes few rows of 16 bits that TMA reads, on sm_90"},
};

// nullptr if the family is none of them.
inline const OwnProduct* own_product(std::string_view family) {
  const auto* found = std::find_if(std::begin(kOwnProducts), std::end(kOwnProducts),
                                   [&](const OwnProduct& own) { return own.name == family; });
  return found == std::end(kOwnProducts) ? nullptr : found;
}

// What the library proposes, the best first.
KernelConfig library_choice(int algorithm);

// As kernel_configs, for a ProductStep.
std::vector<Candidate> product_configs(const StepBuilder& builder, const fuse::ProductStep& step);

// The step by one of them.
void generate_product(StepBuilder& builder, const fuse::ProductStep& step,
                      const KernelConfig& choice);

}  // namespace redfuser::codegen
