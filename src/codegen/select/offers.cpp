#include "codegen/select/offers.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/columns/column_select.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/product/library_product.h"
#include "codegen/product/library_time.h"
#include "codegen/product/product_choice.h"
#include "codegen/scan/scan_select.h"
#include "codegen/select/reduce_select.h"
#include "codegen/select/rows_select.h"

namespace redfuser::codegen {
namespace {

// The family and the configuration of a call, if it has work.
std::optional<KernelConfig> choice_of(const GpuCall& call, const KnownSizes& sizes) {
  const auto* launch = std::get_if<KernelLaunch>(&call);
  const ir::Expr blocks =
      launch != nullptr ? launch->grid[0] : std::get<ProductCall>(call).m;  // null: one
  if (blocks != nullptr && sizes.of(blocks) == 0) return std::nullopt;
  if (launch == nullptr) return KernelConfig{kLibraryFamily, {}};
  return KernelConfig{launch->family, launch->config};
}

std::vector<KernelConfig> choices_of(const GpuStep& step, const KnownSizes& sizes) {
  std::vector<KernelConfig> choices;
  for (const GpuCall& call : step.calls) {
    if (auto choice = choice_of(call, sizes)) choices.push_back(std::move(*choice));
  }
  return choices;
}

double time_of(const GpuStep& step, const KnownSizes& sizes, const Target& target) {
  double time = 0;
  for (const GpuCall& call : step.calls) time += time_of(call, sizes, target);
  return time;
}

// The calls as they are.
Offer offer_of(const StepBuilder& builder) {
  const std::vector<KernelConfig> choices = choices_of(builder.result, builder.sizes);
  Offer offer{choices.empty() ? "no call" : choices.front().family, "", 0, ""};
  if (!choices.empty()) offer.config = calls_text(builder.result, builder.sizes);
  offer.time = builder.result.time;
  return offer;
}

std::string product_choice(ProductFamily family) {
  const bool library = family == ProductFamily::Library;
  return to_string(library ? library_choice(0) : KernelConfig{kProductKernelFamily, {}});
}

// By one family alone.
Offer product_offer(const StepBuilder& builder, const fuse::ProductStep& step,
                    ProductFamily family) {
  StepBuilder trial(builder.graph, builder.step, builder.target);
  trial.sizes = builder.sizes;
  trial.product_family = family;
  generate_product(trial, step);
  const char* name = family == ProductFamily::Library ? kLibraryFamily : kProductKernelFamily;
  const std::vector<KernelConfig> choices = choices_of(trial.result, trial.sizes);
  const bool has = std::any_of(choices.begin(), choices.end(),
                               [&](const KernelConfig& choice) { return choice.family == name; });
  Offer offer{name, "", 0, ""};
  if (has) {
    offer.time = time_of(trial.result, trial.sizes, trial.target);
    offer.config = calls_text(trial.result, trial.sizes);
    offer.choice = product_choice(family);
  } else if (family == ProductFamily::Library) {
    offer.refusal = "the operands are not floats of at most 32 bits";
  } else {
    offer.refusal = "it takes matrices of 16 bits that TMA reads, on sm_90";
  }
  return offer;
}

// By a thread for each result.
Offer reduce_offer(const StepBuilder& builder, const fuse::ReduceStep& step) {
  StepBuilder trial(builder.graph, builder.step, builder.target);
  trial.sizes = builder.sizes;
  generate_reduce(trial, step);
  trial.result.time = time_of(trial.result, trial.sizes, trial.target);
  return offer_of(trial);
}

// A running reduction.
void choose_scan(StepBuilder& builder, const fuse::ReduceStep& step, const ScanForm& form) {
  const std::vector<Candidate> candidates = scan_choices(builder, form, builder.sizes);
  add_scan(builder, form);
  Offer offer = offer_of(builder);
  offer.family = kScanFamily;
  if (!candidates.empty()) {
    builder.result.time = offer.time = candidates.front().time;
    offer.config = offer.choice = to_string(candidates.front().choice);
  }
  builder.result.offers = {
      std::move(offer),
      {"row", "", 0, "what a result is made of depends on its place along the axis"},
      reduce_offer(builder, step)};
}

}  // namespace

bool sizes_known(const ir::Graph& graph, const fuse::Step& step, const KnownSizes& sizes) {
  for (const auto* values : {&step.reads, &step.writes}) {
    for (const ir::ValueId value : *values) {
      for (ir::Expr dim : graph.values[static_cast<size_t>(value)].shape) {
        if (sizes.of(dim) < 0) return false;
      }
    }
  }
  return true;
}

std::string calls_text(const GpuStep& step, const KnownSizes& sizes) {
  const std::vector<KernelConfig> choices = choices_of(step, sizes);
  if (choices.size() == 1) return to_string(choices.front());
  std::vector<std::pair<std::string, int>> families;  // in order of their first calls
  for (const KernelConfig& choice : choices) {
    const auto found = std::find_if(families.begin(), families.end(), [&](const auto& family) {
      return family.first == choice.family;
    });
    if (found != families.end()) ++found->second;
    if (found == families.end()) families.emplace_back(choice.family, 1);
  }
  std::vector<std::string> parts;
  for (const auto& [family, count] : families) {
    parts.push_back(count == 1 ? family : fmt::format("{} {}", count, family));
  }
  return fmt::format("{} calls: {}", choices.size(), fmt::join(parts, ", "));
}

void choose_reduce(StepBuilder& builder, const fuse::ReduceStep& step) {
  if (const auto scan = scan_form(builder, step)) return choose_scan(builder, step, *scan);
  std::vector<Offer>& offers = builder.result.offers;
  const auto rows = rows_of(builder, step);
  const auto* form = std::get_if<FlatStreaming>(&rows);
  if (form == nullptr) {
    generate_reduce(builder, step);
    builder.result.time = time_of(builder.result, builder.sizes, builder.target);
    offers = {offer_of(builder), {"row", "", 0, std::get<std::string>(rows)}};
    return;
  }
  const std::vector<Candidate> candidates = row_fold_configs(builder, *form, builder.sizes);
  add_row_folds(builder, *form);
  if (!candidates.empty()) builder.result.time = candidates.front().time;
  offers = {offer_of(builder)};
  const bool columns = std::holds_alternative<ColumnForm>(column_form(builder, *form));
  offers.front().family = columns ? kColumnFamily : "row";
  if (!candidates.empty()) {
    offers.front().config = offers.front().choice = to_string(candidates.front().choice);
  }
  offers.push_back(reduce_offer(builder, step));
}

void choose_product(StepBuilder& builder, const fuse::ProductStep& step) {
  generate_product(builder, step);
  builder.result.time = time_of(builder.result, builder.sizes, builder.target);
  std::vector<Offer> offers = {offer_of(builder)};
  const bool ours = offers.front().family == kProductKernelFamily;
  offers.front().choice = product_choice(ours ? ProductFamily::Kernel : ProductFamily::Library);
  for (const ProductFamily family : {ProductFamily::Library, ProductFamily::Kernel}) {
    Offer other = product_offer(builder, step, family);
    if (other.family != offers.front().family) offers.push_back(std::move(other));
  }
  builder.result.offers = std::move(offers);
}

void finish_offers(StepBuilder& builder) {
  GpuStep& result = builder.result;
  if (result.time == 0) result.time = time_of(result, builder.sizes, builder.target);
  if (result.offers.empty() && !result.calls.empty()) result.offers = {offer_of(builder)};
  if (sizes_known(builder.graph, builder.step, builder.sizes)) return;
  for (Offer& offer : result.offers) offer.time = 0;
}

}  // namespace redfuser::codegen
