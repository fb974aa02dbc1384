#include "codegen/select/cascade_families.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "codegen/attention/large_head/large_head_kernel.h"
#include "codegen/attention/mask_check.h"
#include "codegen/attention/recognize.h"
#include "codegen/columns/column_select.h"
#include "codegen/ranking/radix_select.h"
#include "codegen/ranking/ranking_select.h"
#include "codegen/row_product/row_product_kernel.h"
#include "codegen/rows/multi_pass_select.h"
#include "codegen/rows/single_pass_select.h"
#include "codegen/select/attention_select.h"
#include "codegen/select/division.h"
#include "codegen/select/rows_select.h"

namespace redfuser::codegen {
namespace {

constexpr const char* kNoAttention = "the cascade is not a product, a map and a weighted sum";

// Head sizes beyond those of the other kernels; compute-bound at half of the products' rate.
double large_head_time(CascadeForms& forms) {
  const AttentionSpec& form = *forms.attention();
  const KnownSizes& sizes = forms.builder.sizes;
  ir::ExprPool& pool = forms.builder.pool();
  const double rows =
      static_cast<double>(sizes.of(product_of(pool, extents_of(pool, form.rows.cascade.rows))));
  const double each =
      static_cast<double>(form.depth->extent()->integer + form.column->extent()->integer);
  const select::Machine& machine = forms.builder.target;
  return 2 * select::kLaunchTime + 2 * rows * static_cast<double>(sizes.of(form.rows.length())) *
                                       each / (0.5 * machine.tensor_rate(form.query->dtype));
}

FamilyAnswer offer_attention(CascadeForms& forms) {
  if (forms.attention() == nullptr) return {{}, kNoAttention};
  const AttentionSpec& form = *forms.attention();
  const int64_t size = std::max(form.depth->extent()->integer, form.column->extent()->integer);
  if (size > kLargestSplit) return {{}, "the heads are larger than 256"};
  std::vector<Candidate> candidates = attention_configs(forms.builder, form);
  if (candidates.empty()) return {{}, "the tiles do not fit into shared memory"};
  return {std::move(candidates), ""};
}

// The check of masks runs before the form's kernels.
AttentionSpec with_mask_check(CascadeForms& forms) {
  AttentionSpec form = *forms.attention();
  if (auto check = mask_check(forms.builder, form)) {
    forms.builder.result.calls.push_back(std::move(*check));
  }
  return form;
}

bool emit_attention(CascadeForms& forms) {
  return add_attention(forms.builder, with_mask_check(forms));
}

bool is_attention(const KernelConfig& choice) { return choice.family.starts_with("attention"); }

void emit_attention_choice(CascadeForms& forms, const KernelConfig& choice) {
  add_attention(forms.builder, with_mask_check(forms), choice);
}

FamilyAnswer offer_large_heads(CascadeForms& forms) {
  if (forms.attention() == nullptr) return {{}, kNoAttention};
  const AttentionSpec& form = *forms.attention();
  const int64_t size = std::max(form.depth->extent()->integer, form.column->extent()->integer);
  if (size <= kLargestSplit) return {{}, "the heads are not larger than 256"};
  StepBuilder trial = forms.builder;
  if (!large_head_kernels(trial, form)) {
    return {{}, "the operands are not 16-bit matrices that TMA reads, or their tiles do not fit"};
  }
  return {{{{"large_head", {}}, large_head_time(forms)}}, ""};
}

bool emit_large_heads(CascadeForms& forms) {
  auto kernels = large_head_kernels(forms.builder, with_mask_check(forms));
  if (!kernels) return false;
  for (KernelLaunch& kernel : *kernels) forms.builder.result.calls.push_back(std::move(kernel));
  return true;
}

FamilyAnswer offer_row(CascadeForms& forms) {
  const FlatStreaming& form = forms.rows();
  if (!folds(form)) {
    return {{}, "elements are ranked or need a product"};
  }
  const auto columns = column_form(forms.builder, form);
  const auto* beside = std::get_if<ColumnForm>(&columns);
  if (beside != nullptr && beside->beside == 1 && !beside->mixed) {
    return {{}, "the rows, not their elements, are adjacent in memory"};
  }
  return {single_pass_configs(forms.builder, form, forms.builder.sizes), ""};
}

bool emit_row(CascadeForms& forms) {
  add_folds(forms.builder, forms.rows());
  return true;
}

bool is_row(const KernelConfig& choice) {
  return choice.family == "row" || choice.family == "row_segments";
}

void emit_row_choice(CascadeForms& forms, const KernelConfig& choice) {
  add_fold(forms.builder, forms.rows(), choice);
}

FamilyAnswer offer_columns(CascadeForms& forms) {
  auto found = column_form(forms.builder, forms.rows());
  if (const auto* refusal = std::get_if<std::string>(&found)) return {{}, *refusal};
  const auto& form = std::get<ColumnForm>(found);
  return {column_configs(forms.builder, form, forms.builder.sizes), ""};
}

bool emit_columns(CascadeForms& forms) {
  add_row_folds(forms.builder, forms.rows());
  return true;
}

bool is_columns(const KernelConfig& choice) { return choice.family == kColumnFamily; }

void emit_columns_choice(CascadeForms& forms, const KernelConfig& choice) {
  add_row_folds(forms.builder, forms.rows(), choice);
}

FamilyAnswer offer_ranking(CascadeForms& forms) {
  const FlatStreaming& form = forms.rows();
  if (auto refusal = ranking_refusal(forms.builder, form)) return {{}, std::move(*refusal)};
  if (!ranking_serves(forms.builder, form)) {
    return {{}, "the list of a row does not fit in shared memory for all sizes"};
  }
  return {ranking_configs(forms.builder, form, forms.builder.sizes), ""};
}

bool emit_ranking(CascadeForms& forms) {
  add_ranking(forms.builder, forms.rows());
  return true;
}

bool is_ranking(const KernelConfig& choice) { return choice.family.starts_with("ranking_"); }

void emit_ranking_choice(CascadeForms& forms, const KernelConfig& choice) {
  add_ranking(forms.builder, forms.rows(), choice);
}

FamilyAnswer offer_row_product(CascadeForms& forms) {
  StepBuilder trial = forms.builder;
  auto found = row_product_form(trial, forms.step, forms.rows());
  if (auto* refusal = std::get_if<std::string>(&found)) return {{}, std::move(*refusal)};
  const auto& form = std::get<RowProductForm>(found);
  const KnownSizes& sizes = trial.sizes;
  auto choices = row_product_choices(trial, form, sizes.of(form.count), sizes.of(form.depth));
  if (!choices.empty()) {
    const auto config = RowProductConfig::of(choices.front().choice);
    if (!row_product_kernel(trial, form, config)) {
      return {{}, "an operand is not a matrix that TMA reads"};
    }
  }
  return {std::move(choices), ""};
}

bool emit_row_product(CascadeForms& forms) {
  const auto found = row_product_form(forms.builder, forms.step, forms.rows());
  const auto* form = std::get_if<RowProductForm>(&found);
  return form != nullptr && add_row_product(forms.builder, *form);
}

bool is_row_product(const KernelConfig& choice) { return choice.family == kRowProductFamily; }

void emit_row_product_choice(CascadeForms& forms, const KernelConfig& choice) {
  const auto found = row_product_form(forms.builder, forms.step, forms.rows());
  auto launch = row_product_kernel(forms.builder, std::get<RowProductForm>(found),
                                   RowProductConfig::of(choice));
  RF_CHECK(launch.has_value(), "{} does not take the cascade", to_string(choice));
  forms.builder.result.calls.push_back(std::move(*launch));
}

FamilyAnswer offer_sort(CascadeForms& forms) {
  const FlatStreaming& form = forms.rows();
  if (auto refusal = sort_refusal(form)) return {{}, std::move(*refusal)};
  return {sort_configs(forms.builder, form), ""};
}

bool emit_sort(CascadeForms& forms) {
  add_sort(forms.builder, forms.rows());
  return true;
}

bool is_sort(const KernelConfig& choice) { return choice.family == kSortFamily; }

FamilyAnswer offer_passes(CascadeForms& forms) {
  const FlatStreaming& form = forms.rows();
  if (folds(form)) return {{}, "one pass computes it"};
  // A thread keeps all ranks of its row, in a pass for each.
  constexpr int64_t kMostRanks = 64;
  for (const cascade::Accumulator& a : form.accumulators) {
    if (!is_ranked(a.reduction)) continue;
    if (a.k > kMostRanks) return {{}, "a pass for every rank"};
  }
  if (!ranking_refusal(forms.builder, form)) return {{}, "a pass for every rank"};
  return {{{{"row_passes", {}}, multi_pass_time(forms.builder, form)}}, ""};
}

bool emit_passes(CascadeForms& forms) {
  add_multi_pass(forms.builder, forms.rows());
  return true;
}

// Families of one configuration.
template <bool (*emit)(CascadeForms&)>
void emit_only(CascadeForms& forms, const KernelConfig& choice) {
  RF_CHECK(emit(forms), "{} does not take the cascade", to_string(choice));
}

bool is_large_head(const KernelConfig& choice) { return choice.family == "large_head"; }
bool is_passes(const KernelConfig& choice) { return choice.family == "row_passes"; }

constexpr CascadeFamily kFamilies[] = {
    {"attention", offer_attention, emit_attention, is_attention, emit_attention_choice},
    {"large_head", offer_large_heads, emit_large_heads, is_large_head, emit_only<emit_large_heads>},
    {"row", offer_row, emit_row, is_row, emit_row_choice},
    {"column", offer_columns, emit_columns, is_columns, emit_columns_choice},
    {"ranking", offer_ranking, emit_ranking, is_ranking, emit_ranking_choice},
    {"row_product", offer_row_product, emit_row_product, is_row_product, emit_row_product_choice},
    {"sort", offer_sort, emit_sort, is_sort, emit_only<emit_sort>},
    {"row_passes", offer_passes, emit_passes, is_passes, emit_only<emit_passes>},
};

}  // namespace

const AttentionSpec* CascadeForms::attention() {
  if (!attention_) attention_ = recognize_attention(builder, step);
  return *attention_ ? &**attention_ : nullptr;
}

const FlatStreaming& CascadeForms::rows() {
  if (!rows_) rows_ = flat_streaming(builder, step);
  return *rows_;
}

std::span<const CascadeFamily> cascade_families() { return kFamilies; }

}  // namespace redfuser::codegen
