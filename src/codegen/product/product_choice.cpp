#include "codegen/product/product_choice.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/product/library_product.h"

namespace redfuser::codegen {
namespace {

// At these sizes.
bool has_kernel(const GpuStep& step, const KnownSizes& sizes) {
  return std::any_of(step.calls.begin(), step.calls.end(), [&](const GpuCall& call) {
    const auto* launch = std::get_if<KernelLaunch>(&call);
    return launch != nullptr && launch->family == kProductKernelFamily &&
           sizes.of(launch->grid[0]) > 0;
  });
}

const ProductCall* library_call(const GpuStep& step) {
  for (const GpuCall& call : step.calls) {
    if (const auto* product = std::get_if<ProductCall>(&call)) return product;
  }
  return nullptr;
}

}  // namespace

KernelConfig library_choice(int algorithm) { return {kLibraryFamily, {{"algorithm", algorithm}}}; }

std::vector<Candidate> product_configs(const StepBuilder& builder, const fuse::ProductStep& step) {
  const KnownSizes& sizes = builder.sizes;
  StepBuilder chosen = builder.trial(), library = builder.trial(), kernel = builder.trial();
  library.product_family = ProductFamily::Library;
  kernel.product_family = ProductFamily::Kernel;
  for (StepBuilder* each : {&chosen, &library, &kernel}) generate_product(*each, step);
  const ProductCall* call = library_call(library.result);
  if (call == nullptr) return {};
  for (ir::Expr size : {call->batch, call->m, call->n, call->k}) {
    if (sizes.of(size) <= 0) return {};
  }
  // The library proposes by its own estimate; the generated kernel is tried early.
  std::vector<Candidate> candidates;
  for (int i = 0; i <= kProductAlgorithms; ++i) {
    candidates.push_back({library_choice(i), static_cast<double>(i)});
  }
  if (has_kernel(kernel.result, sizes)) candidates.push_back({{kProductKernelFamily, {}}, 0.5});
  const KernelConfig first =
      has_kernel(chosen.result, sizes) ? KernelConfig{kProductKernelFamily, {}} : library_choice(0);
  std::vector<Candidate> choices = best_choices({{first, 0}}, std::move(candidates));
  std::erase_if(choices, [&](const Candidate& c) { return builder.leaves_out(c.choice.family); });
  return choices;
}

void generate_product(StepBuilder& builder, const fuse::ProductStep& step,
                      const KernelConfig& choice) {
  const bool library = choice.family == kLibraryFamily;
  RF_CHECK(library || choice.family == kProductKernelFamily, "{} computes no product",
           to_string(choice));
  builder.product_family = library ? ProductFamily::Library : ProductFamily::Kernel;
  generate_product(builder, step);
  for (GpuCall& call : builder.result.calls) {
    auto* product = std::get_if<ProductCall>(&call);
    if (product != nullptr && library) product->algorithm = choice.at("algorithm");
  }
}

}  // namespace redfuser::codegen
