// Limits on what a tool may take.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace redfuser::tools {

// Ends the process with one error line and kCallersError after `seconds` (0: never), unless it is
// destroyed before. Fails for a number below 0 and for NaN; a number of centuries is never.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds);
  ~TimeLimit();
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // The step that runs, for the error line; null: none. The label lives until the next call.
  void in_step(const std::string* label) { step_ = label; }

 private:
  std::atomic<const std::string*> step_ = nullptr;
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread watcher_;
};

// The limit that an option's bytes (0: not given) mean for tensors: else the machine's memory.
int64_t tensor_limit(int64_t bytes);

// Allocations of the process beyond `bytes` more than it has now fail (std::bad_alloc). Mapped
// files do not count.
void limit_process_memory(int64_t bytes);

}  // namespace redfuser::tools
