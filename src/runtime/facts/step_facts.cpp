#include "runtime/facts/step_facts.h"

#include <algorithm>

#include "base/error.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/target_table.h"
#include "codegen/joined/joined_steps.h"
#include "codegen/orders/memory_orders.h"
#include "onnx/import/import.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace runtime {
namespace {

StepCandidate candidate_of(const select::Offer& offer) {
  StepCandidate candidate{offer.family, offer.config, {}, {}, offer.refusal, offer.divides};
  if (offer.time > 0) candidate.estimated_us = offer.time;
  return candidate;
}

// Of a choice as text, such as "row lanes=32".
std::string family_of(const std::string& choice) { return choice.substr(0, choice.find(' ')); }

// The candidates of the offers with their measured times, others that were measured, and the one
// that was taken first.
std::vector<StepCandidate> candidates_of(std::vector<select::Offer> offers,
                                         const StepTuning& tuning) {
  const auto find = [&](const std::string& choice) {
    return std::find_if(offers.begin(), offers.end(), [&](const select::Offer& offer) {
      return offer.refusal.empty() && offer.choice == choice;
    });
  };
  for (const auto& [choice, us] : tuning.measured) {
    if (find(choice) != offers.end()) continue;
    select::Offer other{family_of(choice), choice, 0, "", false, choice};
    const auto estimate = tuning.estimated_us.find(choice);
    if (estimate != tuning.estimated_us.end()) other.time = estimate->second;
    offers.push_back(std::move(other));
  }
  const auto taken = find(tuning.choice);
  RF_CHECK(taken != offers.end(), "{} was chosen but not measured", tuning.choice);
  std::rotate(offers.begin(), taken, taken + 1);
  std::vector<StepCandidate> candidates;
  for (const select::Offer& offer : offers) {
    candidates.push_back(candidate_of(offer));
    for (const auto& [choice, us] : tuning.measured) {
      if (choice == offer.choice) candidates.back().measured_us = us;
    }
  }
  return candidates;
}

void add_kernels(const codegen::GpuStep& form, const select::KnownSizes& sizes, StepFacts& facts) {
  for (const codegen::GpuCall& call : form.calls) {
    const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
    if (launch == nullptr) {
      if (sizes.of(std::get<codegen::ProductCall>(call).m) == 0) continue;
      facts.kernels.push_back({"cublaslt", "", ""});
    } else if (sizes.of(launch->grid[0]) != 0) {
      std::string choice = to_string(codegen::KernelConfig{launch->family, launch->config});
      choice.erase(0, std::min(launch->family.size() + 1, choice.size()));
      facts.kernels.push_back({launch->family, std::move(choice), launch->name});
    }
  }
}

}  // namespace

StepFacts facts_of(const std::vector<select::Offer>& offers, const StepTuning* tuning) {
  StepFacts facts;
  if (tuning != nullptr) {
    facts.candidates = candidates_of(offers, *tuning);
  } else {
    for (const select::Offer& offer : offers) facts.candidates.push_back(candidate_of(offer));
  }
  if (facts.candidates.empty()) return facts;
  const StepCandidate& taken = facts.candidates.front();
  facts.family = taken.family;
  facts.configuration = taken.configuration;
  facts.divided = taken.divides;
  facts.estimated_us = taken.estimated_us;
  facts.measured_us = taken.measured_us;
  return facts;
}

StepFacts facts_of(const codegen::GpuStep& form, const std::vector<select::Offer>& offers,
                   const select::KnownSizes& sizes, const StepTuning* tuning) {
  StepFacts facts = facts_of(offers, tuning);
  add_kernels(form, sizes, facts);
  return facts;
}

}  // namespace runtime

std::vector<StepFacts> Program::step_facts(const std::string& target) const {
  const codegen::Target machine = codegen::target_named(target);
  if (!impl_->model->needs_values.empty()) return {};
  std::vector<StepFacts> facts(impl_->plan.steps.size());
  runtime::visit_parts(
      *impl_, [&](const runtime::CompiledProgram& program, const std::vector<size_t>& numbers) {
        codegen::Target placed = machine;
        codegen::place_values(placed, program.plan, program.appends, {});
        const ir::Graph own = clone(program.graph());  // the program's takes no new expressions
        const codegen::JoinedSteps joined(own, program.plan, placed, {});
        for (size_t i = 0; i < numbers.size(); ++i) {
          if (std::holds_alternative<fuse::AliasStep>(program.plan.steps[i].kind)) continue;
          StepFacts& step = facts[numbers[i]];
          try {
            const codegen::GpuStep form = joined.generate(own, program.plan, i, placed);
            step = runtime::facts_of(form, form.offers, select::KnownSizes());
          } catch (const UserError& error) {
            step.refusal = error.what();
          }
        }
      });
  return facts;
}

}  // namespace redfuser
