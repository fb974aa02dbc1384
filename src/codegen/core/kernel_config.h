// The free choices of a step's kernel generator. A kernel's text depends on the step, the target
// and the configuration alone, so that a stored configuration gives the same kernel again.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/core/gpu_step.h"
#include "select/work.h"

namespace redfuser::codegen {

struct KernelConfig {
  std::string family;  // the kernel's name
  Parameters parameters;

  // InternalError if the family has no such parameter.
  int at(std::string_view parameter) const;
  bool operator==(const KernelConfig&) const = default;
};

// The family of a step that calls the product library.
inline constexpr const char* kLibraryFamily = "library";
// A region divided into steps, which may call it.
inline constexpr const char* kDivisionFamily = "unfused";

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

using select::KnownSizes;

}  // namespace redfuser::codegen
