#include "codegen/product/product_choice.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/cluster_product/cluster_config.h"
#include "codegen/product/library_product.h"
#include "codegen/product/thin_config.h"

namespace redfuser::codegen {
namespace {

// The kernel of the family that runs at these sizes.
const KernelLaunch* kernel_of(const GpuStep& step, const std::string& family,
                              const KnownSizes& sizes) {
  for (const GpuCall& call : step.calls) {
    const auto* launch = std::get_if<KernelLaunch>(&call);
    if (launch != nullptr && launch->family == family && sizes.of(launch->grid[0]) > 0) {
      return launch;
    }
  }
  return nullptr;
}

const ProductCall* library_call(const GpuStep& step) {
  for (const GpuCall& call : step.calls) {
    if (const auto* product = std::get_if<ProductCall>(&call)) return product;
  }
  return nullptr;
}

// A family with configurations to choose from.
struct OwnFamily {
  ProductFamily family;
  const char* name;
};
constexpr OwnFamily kOwnFamilies[] = {{ProductFamily::Thin, kThinProductFamily},
                                      {ProductFamily::Cluster, kClusterProductFamily}};

// The configurations of the family, the fastest by estimate first.
std::vector<Candidate> own_candidates(const StepBuilder& builder, const fuse::ProductStep& step,
                                      const OwnFamily& own) {
  StepBuilder trial = builder.trial();
  trial.product_family = own.family;
  generate_product(trial, step);
  if (kernel_of(trial.result, own.name, builder.sizes) == nullptr) return {};
  return trial.product_choices;
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
  // The library proposes by its own estimate; generated kernels are tried early.
  std::vector<Candidate> candidates;
  for (int i = 0; i <= kProductAlgorithms; ++i) {
    candidates.push_back({library_choice(i), static_cast<double>(i)});
  }
  if (kernel_of(kernel.result, kProductKernelFamily, sizes) != nullptr) {
    candidates.push_back({{kProductKernelFamily, {}}, 0.5});
  }
  for (const OwnFamily& own : kOwnFamilies) {
    double order = 0.3;
    for (const Candidate& candidate : own_candidates(builder, step, own)) {
      candidates.push_back({candidate.choice, order});
      order += 0.6;
    }
  }
  KernelConfig first = library_choice(0);
  for (const char* family : {kProductKernelFamily, kThinProductFamily, kClusterProductFamily}) {
    if (const auto* launch = kernel_of(chosen.result, family, sizes)) {
      first = {family, launch->config};
    }
  }
  std::vector<Candidate> choices = best_choices({{first, 0}}, std::move(candidates));
  std::erase_if(choices, [&](const Candidate& c) { return builder.leaves_out(c.choice.family); });
  return choices;
}

void generate_product(StepBuilder& builder, const fuse::ProductStep& step,
                      const KernelConfig& choice) {
  const bool library = choice.family == kLibraryFamily;
  builder.product_family = library ? ProductFamily::Library : ProductFamily::Kernel;
  bool known = library || choice.family == kProductKernelFamily;
  for (const OwnFamily& own : kOwnFamilies) {
    if (choice.family != own.name) continue;
    builder.product_family = own.family;
    builder.product_config = choice;
    known = true;
  }
  RF_CHECK(known, "{} computes no product", to_string(choice));
  generate_product(builder, step);
  for (GpuCall& call : builder.result.calls) {
    auto* product = std::get_if<ProductCall>(&call);
    if (product != nullptr && library) product->algorithm = choice.at("algorithm");
  }
}

}  // namespace redfuser::codegen
