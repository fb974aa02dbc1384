#include "runtime/gpu/run_timer.h"

namespace redfuser::runtime {

RunTimer::RunTimer(const cuda::DevicePtr& device) {
  for (int i = 0; i < kMarks; ++i) events_.emplace_back(device);
}

void RunTimer::begin(bool on) {
  on_ = on;
  passed_ = 0;
}

void RunTimer::mark(Mark mark, const cuda::Stream& stream) {
  if (!on_) return;
  events_[mark].record(stream);
  passed_ = mark + 1;
}

std::optional<RunTiming> RunTimer::result() const {
  if (!on_ || passed_ < kMarks) return std::nullopt;
  events_[kOutputsCopied].synchronize();
  const auto span = [&](Mark from, Mark to) {
    return events_[to].microseconds_since(events_[from]);
  };
  return RunTiming{span(kStart, kInputsCopied), span(kInputsCopied, kComputed),
                   span(kComputed, kOutputsCopied), enqueue_us_};
}

}  // namespace redfuser::runtime
