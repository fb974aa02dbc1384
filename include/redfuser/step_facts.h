// What computes a step of a program, by which choice, and in which time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace redfuser {

// One way to compute a step, as kernel selection saw it.
struct StepCandidate {
  std::string family, configuration;
  std::optional<double> estimated_us, measured_us;
  std::string refusal;  // why it does not apply; else empty
  // A region of several operators as steps of their own, not as one kernel.
  bool divides = false;
};

// A kernel that a step launches. The product library's is "cublaslt", without a name.
struct StepKernel {
  std::string family, configuration, name;
};

// Facts of a step beside its algebra. Every field is optional.
struct StepFacts {
  std::string family, configuration;  // of what computes it
  bool divided = false;               // as StepCandidate::divides
  std::string refusal;                // why nothing computes it on the device; else empty
  std::vector<StepKernel> kernels;    // that a run launches; on a GPU of unknown sizes all
  // At the sizes of the run, or of the file where it has no symbolic ones.
  std::optional<double> estimated_us;
  std::optional<double> measured_us;
  std::optional<double> share;            // of the measured time of all steps, 0 to 1
  int64_t bytes = 0;                      // as StepTime::bytes
  std::vector<StepCandidate> candidates;  // the one that was taken first
};

}  // namespace redfuser
