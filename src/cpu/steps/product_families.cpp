#include "cpu/steps/product_families.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/steps/product_plan.h"
#include "cpu/steps/reduce_families.h"
#include "cpu/steps/step_kernel.h"
#include "fuse/product.h"

namespace redfuser::cpu {
namespace {

constexpr const char *kProduct = "matrix_product", *kReduction = "reduction";
constexpr int64_t kBlockRows[] = {48, 96, 192, 512, 1024};
constexpr int64_t kBlockColumns[] = {64, 128, 256, 512};
constexpr int64_t kWideBlocks[] = {1024, 2048, 4096};  // of few rows

const fuse::ProductStep& step_of(const StepForm& form) {
  return std::get<fuse::ProductStep>(form.kind);
}

// Equal blocks of at most `most`, each a multiple of `unit`.
int64_t equal_blocks(int64_t size, int64_t most, int64_t unit) {
  const int64_t equal = ceil_div(size, ceil_div(size, most));
  return std::min(size, ceil_div(equal, unit) * unit);
}

select::FamilyAnswer offer_product(StepForm& form) {
  std::string refusal;
  const auto plan = form.program_of<ProductPlan>(kProduct, [&] {
    auto made = std::make_shared<ProductPlan>(form);
    refusal = made->build(form);
    return made;
  });
  if (!refusal.empty()) return {{}, std::move(refusal)};
  if (plan->empty()) return {{{{kProduct, {{"rows", 1}, {"columns", 1}}}, 0}}, ""};
  std::vector<select::Candidate> candidates;
  std::vector<int64_t> widths(std::begin(kBlockColumns), std::end(kBlockColumns));
  if (plan->m() <= kRowsInPlace) {
    widths.insert(widths.end(), std::begin(kWideBlocks), std::end(kWideBlocks));
  }
  for (const int64_t most_rows : kBlockRows) {
    for (const int64_t most_columns : widths) {
      const int64_t rows = equal_blocks(plan->m(), most_rows, 12);
      const int64_t columns = equal_blocks(plan->n(), most_columns, 32);
      select::KernelConfig choice{
          kProduct, {{"rows", static_cast<int>(rows)}, {"columns", static_cast<int>(columns)}}};
      const bool known = std::any_of(candidates.begin(), candidates.end(),
                                     [&](const auto& other) { return other.choice == choice; });
      if (known) continue;
      plan->set_blocks(rows, columns);
      const StepTime time = plan->time(form.threads);
      form.floor = form.floor > 0 ? std::min(form.floor, time.floor) : time.floor;
      candidates.push_back({std::move(choice), time.time});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return {std::move(candidates), ""};
}

std::shared_ptr<const StepPlan> emit_product(StepForm& form, const select::KernelConfig& choice) {
  auto plan = form.take<ProductPlan>(kProduct, [&] {
    auto made = std::make_shared<ProductPlan>(form);
    const std::string refusal = made->build(form);
    RF_CHECK(refusal.empty(), "{}: {}", kProduct, refusal);
    return made;
  });
  plan->set_blocks(choice.at("rows"), choice.at("columns"));
  plan->pack_constants(form.graph, *form.panels);
  plan->saved = plan->time(form.threads).saved;
  return plan;
}

// The kernels of products compute the same faster, unless an estimate exceeds their floor so much.
constexpr double kTooSlow = 4;

// The same meaning as a reduction.
ReducePlan::MakeBody reduction_of(const StepForm& form) {
  return [&form](ir::ExprPool& pool) {
    const fuse::ProductStep& step = step_of(form);
    Specializer specializer(pool, form.symbols);
    fuse::ProductStep copy = step;
    for (ir::Expr* e : {&copy.k, &copy.a, &copy.a_zero, &copy.epilogue}) {
      if (*e) *e = specializer.copy(*e);
    }
    for (auto* list : {&copy.b, &copy.b_zeros, &copy.axes}) {
      for (ir::Expr& e : *list) {
        if (e) e = specializer.copy(e);
      }
    }
    fuse::ReduceStep reduce = fuse::as_reduction(pool, copy);
    return ReducePlan::Body{reduce.value, std::move(reduce.axes), reduce.body};
  };
}

select::FamilyAnswer offer_as_reduction(StepForm& form) {
  if (!form.thorough && form.least < kTooSlow * form.floor) {
    return {{}, fmt::format("its sums take {:.1f} us or more", kTooSlow * form.floor)};
  }
  return offer_reduction(form, ReduceColumnsKind::Output, kReduction, reduction_of(form));
}

std::shared_ptr<const StepPlan> emit_as_reduction(StepForm& form,
                                                  const select::KernelConfig& choice) {
  return emit_reduction(form, choice, ReduceColumnsKind::Output, kReduction, reduction_of(form));
}

constexpr const char* kReducedRows = "reduction_rows";

select::FamilyAnswer offer_as_rows(StepForm& form) {
  if (!form.thorough && form.least < kTooSlow * form.floor) {
    return {{}, "the columns of products are those of the output"};
  }
  return offer_reduction(form, ReduceColumnsKind::Reduced, kReducedRows, reduction_of(form));
}

std::shared_ptr<const StepPlan> emit_as_rows(StepForm& form, const select::KernelConfig& choice) {
  return emit_reduction(form, choice, ReduceColumnsKind::Reduced, kReducedRows, reduction_of(form));
}

constexpr Family kFamilies[] = {
    {kProduct, offer_product, emit_product},
    {kReduction, offer_as_reduction, emit_as_reduction},
    {kReducedRows, offer_as_rows, emit_as_rows},
};

std::vector<ir::Expr> expressions(const fuse::ProductStep& step) {
  std::vector<ir::Expr> result = step.axes;
  for (const auto* list : {&step.batch, &step.m, &step.n}) {
    result.insert(result.end(), list->begin(), list->end());
  }
  for (ir::Expr e : {step.k, step.a, step.epilogue}) result.push_back(e);
  result.insert(result.end(), step.b.begin(), step.b.end());
  result.push_back(step.a_zero);
  result.insert(result.end(), step.b_zeros.begin(), step.b_zeros.end());
  return result;
}

}  // namespace

std::span<const Family> product_families() { return kFamilies; }

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::ProductStep& step) {
  return symbols_of(graph, expressions(step), {&step.value, 1});
}

}  // namespace redfuser::cpu
