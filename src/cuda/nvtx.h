// Ranges in the timelines of Nsight and other tools that listen to NVTX 3.
//
// A tool sets NVTX_INJECTION64_PATH to its library, which is opened at the first range and fills in
// the functions that it implements. Without a tool a range costs the test of a pointer.
#pragma once

#include <string>

namespace redfuser::cuda {

// A range from construction to destruction, on the calling thread.
class TimelineRange {
 public:
  explicit TimelineRange(const std::string& name);
  ~TimelineRange();
  TimelineRange(const TimelineRange&) = delete;
  TimelineRange& operator=(const TimelineRange&) = delete;
};

}  // namespace redfuser::cuda
