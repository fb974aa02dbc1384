// Comparison of a program's steps with the unfused graph.
#pragma once

#include <string>
#include <vector>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"

namespace redfuser {

struct Verification {
  int steps = 0;           // of the program
  int compared_steps = 0;  // whose values exist in the unfused graph
  int values = 0;          // of those steps
  int decided_wide = 0;    // values that needed the wider bounds described below
  // Values that are compared with the CPU's unfused run instead of the reference, "name: reason":
  // the reference does not cover an operator that they depend on.
  std::vector<std::string> against_cpu;
  std::vector<Comparison> failed;  // in the order of the steps
  std::string first_label;         // the step that computes the first of them
  std::string first_kind;
  std::string reason;  // the reason if the program has no steps to compare; else empty
};

// Compares every step of the program with its operators in the unfused graph. The reference
// executor (SessionOptions::device "reference") evaluates those in fp64, without code of the CPU's
// kernels, and rounds the results to their types: these are the expected values. The step runs on
// the device of the options. Both take the expected values of earlier steps as inputs, so that
// errors do not accumulate. For operators that the reference does not cover, the expected values
// come from the CPU's unfused run. `program` must be compiled from `model`; random operators are
// left out.
//
// Values agree within `tolerance`; floats also within two units in the last place of their type.
// Otherwise a value agrees if its largest error, less those two units, is at most 1.2 times that of
// the unfused operators, whose every result is rounded to its type; or 1.2 times that of the CPU's
// unfused run, provided that this run fails the bound before in at most one of 100 elements. An
// error does not count as far as a jump (such as rounding to integers) explains it by an argument
// at its edge. NaN and infinities must be those of the reference or of the unfused operators.
Verification verify_steps(const Model& model, const Program& program, const NamedTensors& inputs,
                          const Tolerance& tolerance = {}, const SessionOptions& options = {});

}  // namespace redfuser
