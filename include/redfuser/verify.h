// Checking what a program's steps compute against the graph that they stand for.
#pragma once

#include <string>
#include <vector>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"

namespace redfuser {

struct Verification {
  int steps = 0;           // of the program
  int compared_steps = 0;  // whose values the unfused graph has too
  int values = 0;          // of those steps
  int decided_wide = 0;    // values that took the bounds of their types to decide
  // Values that are compared with the CPU's unfused run, "name: why", because the reference
  // executor does not cover an operator before them.
  std::vector<std::string> against_cpu;
  std::vector<Comparison> failed;  // in the order of the steps
  std::string first_label;         // the step that computes the first of them
  std::string first_kind;
  std::string reason;  // why the program has no steps to compare; else empty
};

// Compares every step of the program with the operators that it stands for. Those are evaluated in
// fp64, apart from the CPU's kernels, from what is expected of the steps before, and rounded to the
// value's type. The step is run with the options on the same values, so that no error is passed on.
// Where the evaluation does not cover an operator (SessionOptions::device "reference"), the CPU's
// unfused run gives what is expected. `program` is compiled from `model`; random operators are left
// out.
//
// Values agree within `tolerance`; floats also within two units in the last place of their type.
// Where they do not, the value agrees if its largest error is at most 1.2 times the operators' own
// beside the two units: that of rounding every result to its type, or that of the CPU's unfused
// run, unless the latter is beyond the former in more than one of 100 elements. The part of an
// error that rounding to integers (or another jump) explains by an argument at its edge does not
// count. NaN and infinities have to be those of the evaluation or of the operators.
Verification verify_steps(const Model& model, const Program& program, const NamedTensors& inputs,
                          const Tolerance& tolerance = {}, const SessionOptions& options = {});

}  // namespace redfuser
