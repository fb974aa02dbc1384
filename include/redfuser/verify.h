// Checking what a program's steps compute against the graph that they stand for.
#pragma once

#include <string>
#include <vector>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"

namespace redfuser {

struct Verification {
  int steps = 0;                   // of the program
  int compared_steps = 0;          // whose values the unfused graph has too
  int values = 0;                  // of those steps
  int decided_wide = 0;            // values that took an evaluation in wider floats to decide
  std::vector<Comparison> failed;  // in the order of the steps
  std::string first_label;         // the step that computes the first of them
  std::string first_kind;
  std::string reason;  // why the program has no steps to compare; else empty
};

// Runs the model operator by operator on the CPU, then the program with the options. Every step of
// the program is given what the operators have computed, so that no error is passed on, and what it
// makes of that is compared with what they make of it. `program` is compiled from `model`; random
// operators are left out.
//
// Values agree within `tolerance`; floats also within two units in the last place of their type.
// Where they do not, the operators between the step's inputs and the value are evaluated in wider
// floats (passes/wide_evaluation.h), and the value agrees if its largest error against that is at
// most 1.2 times the operators' own beside the two units. The part of an error that rounding to
// integers (or another jump) explains by an argument at its edge does not count. NaN and infinities
// have to be those of either evaluation.
Verification verify_steps(const Model& model, const Program& program, const NamedTensors& inputs,
                          const Tolerance& tolerance = {}, const SessionOptions& options = {});

}  // namespace redfuser
