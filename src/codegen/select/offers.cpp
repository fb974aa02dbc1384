#include "codegen/select/offers.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/columns/column_select.h"
#include "codegen/contraction/contraction_kernel.h"
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

// The calls as they are.
Offer offer_of(const StepBuilder& builder) {
  const std::vector<KernelConfig> choices = choices_of(builder.result, builder.sizes);
  Offer offer{choices.empty() ? "no call" : choices.front().family, "", 0, ""};
  if (!choices.empty()) offer.config = calls_text(builder.result, builder.sizes);
  offer.time = builder.result.time;
  return offer;
}

// Of steps whose families offer one thing each.
bool leaves_out(const StepBuilder& builder, const std::string& family) {
  return builder.leaves_out(family) || builder.leaves_out_offer(family);
}

// What multiplies, behind copies of operands.
std::optional<KernelConfig> multiplying(const GpuStep& step, const KnownSizes& sizes) {
  for (const KernelConfig& choice : choices_of(step, sizes)) {
    if (choice.family == kLibraryFamily) return library_choice(0);
    if (own_product(choice.family) != nullptr) return choice;
  }
  return std::nullopt;
}

bool calls_library(const GpuStep& step) {
  return std::any_of(step.calls.begin(), step.calls.end(),
                     [](const GpuCall& call) { return std::holds_alternative<ProductCall>(call); });
}

// By a family that is not left out.
void make_product(StepBuilder& builder, const fuse::ProductStep& step) {
  builder.product_family = ProductFamily::ByEstimate;
  if (leaves_out(builder, kLibraryFamily)) {
    builder.product_family = ProductFamily::Plain;
    for (const OwnProduct& own : kOwnProducts) {
      if (leaves_out(builder, own.name)) continue;
      StepBuilder trial = builder.trial();
      trial.product_family = own.family;
      generate_product(trial, step);
      if (!calls_library(trial.result)) builder.product_family = own.family;
    }
  }
  generate_product(builder, step);
}

// By one family alone.
Offer product_offer(const StepBuilder& builder, const fuse::ProductStep& step, ProductFamily family,
                    const char* name, const char* refusal) {
  StepBuilder trial = builder.trial();
  trial.product_family = family;
  generate_product(trial, step);
  const std::vector<KernelConfig> choices = choices_of(trial.result, trial.sizes);
  const bool has = std::any_of(choices.begin(), choices.end(),
                               [&](const KernelConfig& choice) { return choice.family == name; });
  Offer offer{name, "", 0, ""};
  if (has && leaves_out(builder, name)) {
    offer.refusal = "it fails";
  } else if (has) {
    offer.time = time_of(trial.result, trial.sizes, trial.target);
    offer.config = calls_text(trial.result, trial.sizes);
    if (const auto choice = multiplying(trial.result, trial.sizes))
      offer.choice = to_string(*choice);
  } else {
    offer.refusal = refusal;
  }
  return offer;
}

// By a kernel that takes every result by itself, or by tiles of them.
Offer reduce_offer(const StepBuilder& builder, const fuse::ReduceStep& step) {
  StepBuilder trial = builder.trial();
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

// The row kernels' choices that are not left out.
struct RowChoices {
  std::string family;  // "row" or "column"
  std::vector<Candidate> choices;
  bool some_fail = false;
};

RowChoices row_choices(StepBuilder& builder, const FlatStreaming& form) {
  const bool columns = std::holds_alternative<ColumnForm>(column_form(builder, form));
  RowChoices found{columns ? kColumnFamily : "row", {}, false};
  found.some_fail = builder.leaves_out_offer(found.family);
  if (found.some_fail) return found;
  found.choices = row_fold_configs(builder, form, builder.sizes);
  const size_t left_out = std::erase_if(found.choices, [&](const Candidate& candidate) {
    return builder.leaves_out(candidate.choice.family);
  });
  found.some_fail = left_out > 0;
  return found;
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

size_t count_calls(const GpuStep& step, const KnownSizes& sizes) {
  return choices_of(step, sizes).size();
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

namespace {

// Whether a thread for each result takes less than lanes that share a row, where all sizes are
// constants and rows are short.
bool threads_pay(StepBuilder& builder, const fuse::ReduceStep& step, const FlatStreaming& form,
                 const RowChoices& rows) {
  constexpr int64_t kShortRow = 32;
  ir::Expr length = form.length();
  const bool known = std::all_of(form.cascade.rows.begin(), form.cascade.rows.end(),
                                 [](ir::Expr row) { return row->extent()->is_constant(); });
  if (!known || !length->is_constant() || length->integer > kShortRow) return false;
  if (rows.choices.empty()) return false;
  const Offer threads = reduce_offer(builder, step);
  return threads.time > 0 && threads.time < rows.choices.front().time;
}

}  // namespace

std::vector<Candidate> reduce_configs(StepBuilder& builder, const fuse::ReduceStep& step) {
  const auto scan = scan_form(builder, step);
  if (scan && !leaves_out(builder, kScanFamily)) {
    return scan_choices(builder, *scan, builder.sizes);
  }
  const auto rows = rows_of(builder, step);
  const auto* form = std::get_if<FlatStreaming>(&rows);
  if (form == nullptr) return {};
  RowChoices found = row_choices(builder, *form);
  if (threads_pay(builder, step, *form, found)) return {};
  return std::move(found.choices);
}

void choose_reduce(StepBuilder& builder, const fuse::ReduceStep& step) {
  const auto scan = scan_form(builder, step);
  if (scan && !leaves_out(builder, kScanFamily)) return choose_scan(builder, step, *scan);
  std::vector<Offer>& offers = builder.result.offers;
  const auto rows = rows_of(builder, step);
  const auto* form = std::get_if<FlatStreaming>(&rows);
  const RowChoices found = form == nullptr ? RowChoices() : row_choices(builder, *form);
  if (form == nullptr || (found.some_fail && found.choices.empty())) {
    Offer other = generate_reduce(builder, step);
    builder.result.time = time_of(builder.result, builder.sizes, builder.target);
    const std::string refusal = form == nullptr ? std::get<std::string>(rows) : "it fails";
    offers = {offer_of(builder), {form == nullptr ? "row" : found.family, "", 0, refusal}};
    offers.push_back(std::move(other));
    if (scan) offers.push_back({kScanFamily, "", 0, "it fails"});
    return;
  }
  if (threads_pay(builder, step, *form, found)) {
    generate_reduce(builder, step);
    builder.result.time = time_of(builder.result, builder.sizes, builder.target);
    const std::string rows = to_string(found.choices.front().choice);
    offers = {offer_of(builder), {found.family, rows, found.choices.front().time, "", false, rows}};
    return;
  }
  if (found.some_fail) add_row_folds(builder, *form, found.choices.front().choice);
  if (!found.some_fail) add_row_folds(builder, *form);
  if (!found.choices.empty()) builder.result.time = found.choices.front().time;
  Offer taken = offer_of(builder);
  taken.family = found.family;
  if (!found.choices.empty()) {
    taken.config = taken.choice = to_string(found.choices.front().choice);
  }
  offers = {std::move(taken), reduce_offer(builder, step)};
}

void choose_product(StepBuilder& builder, const fuse::ProductStep& step) {
  make_product(builder, step);
  builder.result.time = time_of(builder.result, builder.sizes, builder.target);
  std::vector<Offer> offers = {offer_of(builder)};
  if (const auto choice = multiplying(builder.result, builder.sizes)) {
    offers.front().family = choice->family;
    offers.front().choice = to_string(*choice);
  }
  const auto add = [&](ProductFamily family, const char* name, const char* refusal) {
    if (name == offers.front().family) return;
    offers.push_back(product_offer(builder, step, family, name, refusal));
  };
  add(ProductFamily::Library, kLibraryFamily, "the operands are not floats of at most 32 bits");
  for (const OwnProduct& own : kOwnProducts) add(own.family, own.name, own.refusal);
  builder.result.offers = std::move(offers);
}

void finish_offers(StepBuilder& builder) {
  GpuStep& result = builder.result;
  if (result.time == 0) result.time = time_of(result, builder.sizes, builder.target);
  if (result.offers.empty() && !result.calls.empty()) result.offers = {offer_of(builder)};
  if (!result.offers.empty() && builder.leaves_out_offer(result.offers.front().family)) {
    builder.fail_without_kernel();
  }
  if (sizes_known(builder.graph, builder.step, builder.sizes)) return;
  for (Offer& offer : result.offers) offer.time = 0;
}

}  // namespace redfuser::codegen
