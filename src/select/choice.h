// The choices of a step's kernel: what selection compares on every device.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redfuser::select {

// A configuration's parameters by name, such as {"keys", 128}.
using Parameters = std::vector<std::pair<std::string, int>>;

// The free choices of a kernel. A kernel depends on the step, the machine and the configuration
// alone, so that a stored configuration gives the same kernel again.
struct KernelConfig {
  std::string family;  // the kernel's name
  Parameters parameters;

  // InternalError if the family has no such parameter.
  int at(std::string_view parameter) const;
  bool operator==(const KernelConfig&) const = default;
};

// "attention_split warps=4 keys=32 stages=3"
std::string to_string(const KernelConfig& choice);

// A choice and the estimated time of its kernels in microseconds, launches included.
struct Candidate {
  KernelConfig choice;
  double time = 0;
};

// The largest number of choices for a step.
inline constexpr size_t kMaxChoices = 8;

// `chosen` in their order, then the fastest of `candidates`, without repetitions.
std::vector<Candidate> best_choices(std::vector<Candidate> chosen,
                                    std::vector<Candidate> candidates);

}  // namespace redfuser::select
