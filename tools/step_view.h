// What computes the steps of a program, for people: lines made of the JSON of Program::explain.
#pragma once

#include <string>

#include "report_view.h"

namespace redfuser::tools {

class StepView {
 public:
  // Of a report with or without its "steps"; it must outlive this.
  explicit StepView(const Json& report);

  // The step of a fused region: family, configuration, times, and why no other family.
  std::string of_region(int region) const;
  // The same of all other steps, below a line that names the device; empty without any.
  std::string others() const;

 private:
  std::string facts(size_t number, const std::string& indent) const;
  const Json& report_;
  Json steps_;
  // By step: the first one that the same choice computes, in the same time.
  std::vector<size_t> first_like_;
  bool estimated_ = false;  // some step has an estimate
};

}  // namespace redfuser::tools
