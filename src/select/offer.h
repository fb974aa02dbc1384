// What the families that may compute a step answer, and their order: the least estimate first.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "select/choice.h"

namespace redfuser::select {

// What a family answers: configurations with their times, that of its default first, or why it
// does not take the step.
struct FamilyAnswer {
  std::vector<Candidate> candidates;
  std::string refusal;
};

// An alternative that was compared for a step.
struct Offer {
  std::string family;  // "attention", "row", ...; for a division of a region its name
  std::string config;
  double time = 0;       // microseconds by estimate; 0: unknown
  std::string refusal;   // why the family does not support the step; `time` is then unset
  bool divides = false;  // the region divided into steps
  std::string choice;    // the KernelConfig as text; empty where there is nothing to choose
};

// "row (row lanes=32): 2.1 us", "column: refused, ..."
std::string to_string(const Offer& offer);

// Of ways to compute a step, each with its `offer`: by time, refusals last. Equal ones keep their
// order.
template <typename Way>
void sort_by_time(std::vector<Way>& ways) {
  std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    if (a.offer.refusal.empty() != b.offer.refusal.empty()) return a.offer.refusal.empty();
    return a.offer.time < b.offer.time;
  });
}

// Infinite where all refuse.
template <typename Way>
double least_time(const std::vector<Way>& ways) {
  double best = HUGE_VAL;
  for (const Way& way : ways) {
    if (way.offer.refusal.empty()) best = std::min(best, way.offer.time);
  }
  return best;
}

}  // namespace redfuser::select
