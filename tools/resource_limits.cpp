#include "resource_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "redfuser/signals.h"
#include "tool.h"

namespace redfuser::tools {

TimeLimit::TimeLimit(double seconds) {
  constexpr double kForever = 1e9;  // the clock counts no further than some centuries
  if (!(seconds >= 0)) fail("--time-limit: {} is not a number of seconds", seconds);
  if (seconds == 0 || seconds >= kForever) return;
  watcher_ = std::thread([this, seconds] {
    std::unique_lock lock(mutex_);
    if (over_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return done_; })) return;
    const std::string* step = step_;
    tell(fmt::format("error: the time limit of {} s (--time-limit) is over{}\n", seconds,
                     step == nullptr ? "" : fmt::format(", in step \"{}\"", *step)));
    // Streams are not flushed: another thread may be waiting for a reader of one.
    remove_unfinished_files();
    std::_Exit(kCallersError);
  });
}

TimeLimit::~TimeLimit() {
  if (!watcher_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  over_.notify_all();
  watcher_.join();
}

int64_t tensor_limit(int64_t bytes) {
  if (bytes > 0) return bytes;
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
}

void limit_process_memory(int64_t bytes) {
  int64_t pages = 0, data_pages = 0;
  std::ifstream status("/proc/self/statm");
  for (int i = 0; i < 6 && status >> pages; ++i) data_pages = pages;
  const auto present = static_cast<rlim_t>(data_pages) * 4096;
  const rlimit limit{present + static_cast<rlim_t>(bytes), RLIM_INFINITY};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) fail("the memory limit cannot be set here");
}

}  // namespace redfuser::tools
