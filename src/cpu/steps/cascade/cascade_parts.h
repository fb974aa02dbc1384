// A cascade of few long rows, part by part: states of the parts of a row are folded side by side
// and merged, and the outputs that have the streamed axis are mapped back afterwards. What an
// element reads along the axis, such as the bias of its channel, is the same within a part.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

struct CascadeParts {
  ir::ExprPool pool;                  // of the steps
  std::vector<fuse::StepKind> steps;  // in order: the states of parts, the results, the outputs
  std::vector<InnerValue> inner;      // states and results
};

// Parts of so many elements. `stored`: what all states fold is computed once, into an inner value
// that the states and the outputs read.
struct PartsForm {
  int64_t length = 0;
  bool stored = false;
};

// The forms that are worth comparing, or why the cascade of the form is not divided: states that
// depend on running results are not merged by their reductions alone.
std::variant<std::vector<PartsForm>, std::string> part_forms(const StepForm& form);

// The steps of one of these forms; null where an output's elements are not those of the streamed
// axis in order.
std::shared_ptr<const CascadeParts> cascade_parts(const StepForm& form, PartsForm of);

}  // namespace redfuser::cpu
