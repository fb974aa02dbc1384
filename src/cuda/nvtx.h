// Ranges in the timelines of Nsight and other tools that listen to NVTX 3.
//
// NVTX has no library of its own: a tool sets NVTX_INJECTION64_PATH to the library that it wants in
// the process, which is opened at the first range and fills in the functions that it listens to.
// Without a tool a range costs a test of a pointer.
#pragma once

#include <string>

namespace redfuser::cuda {

// From construction to destruction, on the calling thread.
class TimelineRange {
 public:
  explicit TimelineRange(const std::string& name);
  ~TimelineRange();
  TimelineRange(const TimelineRange&) = delete;
  TimelineRange& operator=(const TimelineRange&) = delete;
};

}  // namespace redfuser::cuda
