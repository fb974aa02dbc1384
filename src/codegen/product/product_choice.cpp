#include "codegen/product/product_choice.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/contraction/contraction_config.h"
#include "codegen/product/library_product.h"
#include "codegen/product/plain_product.h"

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

// The family's configurations, the fastest by estimate first.
std::vector<Candidate> own_candidates(const StepBuilder& builder, const fuse::ProductStep& step,
                                      const OwnProduct& own) {
  StepBuilder trial = builder.trial();
  trial.product_family = own.family;
  generate_product(trial, step);
  const KernelLaunch* launch = kernel_of(trial.result, own.name, builder.sizes);
  if (launch == nullptr) return {};
  if (trial.product_choices.empty()) return {{{own.name, launch->config}, 0}};
  return trial.product_choices;
}

}  // namespace

KernelConfig library_choice(int algorithm) { return {kLibraryFamily, {{"algorithm", algorithm}}}; }

std::vector<Candidate> product_configs(const StepBuilder& builder, const fuse::ProductStep& step) {
  const KnownSizes& sizes = builder.sizes;
  StepBuilder chosen = builder.trial(), library = builder.trial();
  library.product_family = ProductFamily::Library;
  for (StepBuilder* each : {&chosen, &library}) generate_product(*each, step);
  const ProductCall* call = library_call(library.result);
  const bool plain = kernel_of(chosen.result, kPlainProductFamily, sizes) != nullptr ||
                     kernel_of(chosen.result, kContractionFamily, sizes) != nullptr;
  if (call == nullptr || plain) return {};
  for (ir::Expr size : {call->batch, call->m, call->n, call->k}) {
    if (sizes.of(size) <= 0) return {};
  }
  // The library proposes by its own estimate; generated kernels are tried early.
  std::vector<Candidate> candidates;
  for (int i = 0; i < kProductAlgorithms; ++i) {
    candidates.push_back({library_choice(i), static_cast<double>(i)});
  }
  for (const OwnProduct& own : kOwnProducts) {
    double order = 0.3;
    for (const Candidate& candidate : own_candidates(builder, step, own)) {
      candidates.push_back({candidate.choice, order});
      order += 0.6;
    }
  }
  KernelConfig first = library_choice(0);
  for (const OwnProduct& own : kOwnProducts) {
    if (const auto* launch = kernel_of(chosen.result, own.name, sizes)) {
      first = {own.name, launch->config};
    }
  }
  if (reads_codes(first)) {
    std::erase_if(candidates, [](const Candidate& c) { return !reads_codes(c.choice); });
  }
  std::vector<Candidate> choices = best_choices({{first, 0}}, std::move(candidates));
  std::erase_if(choices, [&](const Candidate& c) { return builder.leaves_out(c.choice.family); });
  return choices;
}

void generate_product(StepBuilder& builder, const fuse::ProductStep& step,
                      const KernelConfig& choice) {
  const bool library = choice.family == kLibraryFamily;
  const OwnProduct* own = own_product(choice.family);
  RF_CHECK(library || own != nullptr, "{} computes no product", to_string(choice));
  builder.product_family = library ? ProductFamily::Library : own->family;
  if (own != nullptr && !choice.parameters.empty()) builder.product_config = choice;
  generate_product(builder, step);
  for (GpuCall& call : builder.result.calls) {
    auto* product = std::get_if<ProductCall>(&call);
    if (product != nullptr && library) product->algorithm = choice.at("algorithm");
  }
}

}  // namespace redfuser::codegen
