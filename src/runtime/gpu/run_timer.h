// Events around the parts of a run.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "cuda/driver.h"
#include "redfuser/timing.h"

namespace redfuser::runtime {

class RunTimer {
 public:
  explicit RunTimer(const cuda::DevicePtr& device);

  // In the order in which a run passes them.
  enum Mark { kStart, kInputsCopied, kComputed, kOutputsCopied, kMarks };

  // Forgets the last run; without `on` the marks of the next one do nothing.
  void begin(bool on);
  void mark(Mark mark, const cuda::Stream& stream);
  // Takes the host's time of `enqueue`.
  template <typename Body>
  void time_enqueue(const Body& enqueue) {
    const auto start = std::chrono::steady_clock::now();
    enqueue();
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - start;
    enqueue_us_ = taken.count();
  }
  // Waits for the end of the run; nothing if it did not pass every mark.
  std::optional<RunTiming> result() const;

 private:
  std::vector<cuda::Event> events_;
  bool on_ = false;
  int passed_ = 0;
  double enqueue_us_ = 0;
};

}  // namespace redfuser::runtime
