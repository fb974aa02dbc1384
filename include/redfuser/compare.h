// Comparing tensors, and describing them in a few numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "redfuser/redfuser.h"
#include "redfuser/tensor.h"

namespace redfuser {

// got equals expected when |got - expected| <= absolute + relative * |expected|. Integers and bools
// have no relative tolerance. NaN equals NaN, and an infinity equals the same infinity. All numbers
// are finite and not negative.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-4;
  // Also allowed: an error of `error` and so many units in the last place that |expected| has in
  // the narrower of the two floating types.
  double units = 0;
  double error = 0;
};

struct Comparison {
  std::string name;
  bool passed = false;
  // Why the elements could not be compared (shapes, kinds of type, a missing tensor); else empty.
  std::string problem;
  // A remark on a comparison that was made, such as that the types differ; else empty.
  std::string note;
  int64_t elements = 0;
  int64_t mismatches = 0;
  // The element that is furthest beyond (or nearest to) its tolerance.
  Dims worst_index;
  double worst_got = 0, worst_expected = 0;
  double worst_absolute = 0, worst_relative = 0;  // of that element
  double max_absolute = 0;                        // over elements finite on both sides
  // Over elements finite on both sides; 1 when both are zero vectors, 0 when one of them is.
  double cosine = 1;
  int64_t got_nan = 0, got_inf = 0, expected_nan = 0, expected_inf = 0;
};

// Floating types of different widths compare by value, which a note says; other differences of
// dtype are a problem. UserError for a tolerance that is negative or not finite.
Comparison compare(const std::string& name, const Tensor& got, const Tensor& expected,
                   const Tolerance& tolerance = {});

// Every tensor of `expected`, in order of name. A single expected tensor is compared with a single
// got one whatever their names. Throws UserError if no name is common.
std::vector<Comparison> compare(const NamedTensors& got, const NamedTensors& expected,
                                const Tolerance& tolerance = {});

// "out: 3 of 3072 elements differ; worst at [0,4,7]: got 1.5, expected 1.25 (abs 0.25, rel 0.2)"
std::string describe(const Comparison& comparison);

// Smallest, largest and mean of the finite elements (0 when there is none).
struct Summary {
  double min = 0, max = 0, mean = 0;
  int64_t nan = 0, inf = 0;
};
Summary summarize(const Tensor& tensor);

}  // namespace redfuser
