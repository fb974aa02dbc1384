#include "runtime/report/facts_json.h"

#include <cmath>

namespace redfuser::runtime {
namespace {

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

Json to_json(const StepCandidate& candidate) {
  return {{"family", candidate.family},
          {"configuration", candidate.configuration},
          {"divides", candidate.divides},
          {"estimated_us", number(candidate.estimated_us)},
          {"measured_us", number(candidate.measured_us)},
          {"refusal", candidate.refusal}};
}

Json to_json(const StepKernel& kernel) {
  return {
      {"family", kernel.family}, {"configuration", kernel.configuration}, {"name", kernel.name}};
}

}  // namespace

Json facts_json(const StepFacts& facts) {
  Json candidates = Json::array(), kernels = Json::array();
  for (const StepCandidate& each : facts.candidates) candidates.push_back(to_json(each));
  for (const StepKernel& each : facts.kernels) kernels.push_back(to_json(each));
  return {{"family", facts.family},
          {"configuration", facts.configuration},
          {"divided", facts.divided},
          {"refusal", facts.refusal},
          {"estimated_us", number(facts.estimated_us)},
          {"measured_us", number(facts.measured_us)},
          {"share", number(facts.share)},
          {"bytes", facts.bytes},
          {"kernels", std::move(kernels)},
          {"candidates", std::move(candidates)}};
}

}  // namespace redfuser::runtime
