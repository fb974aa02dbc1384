#include "run_timing.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "tool.h"

namespace redfuser::tools {
namespace {

using Clock = std::chrono::steady_clock;

// A line on stderr for runs that outlast a second; silent when stderr is no terminal.
class ProgressLine {
 public:
  ProgressLine(Session& session, int runs) : session_(session), runs_(runs) {
    if (!isatty(STDERR_FILENO)) return;
    session_.on_progress([this](int done, int steps) { show(done, steps); });
  }
  ~ProgressLine() {
    session_.on_progress(nullptr);
    if (shown_) tell("\r\x1b[K");
  }
  void next_run() { ++run_; }

 private:
  void show(int done, int steps) {
    using namespace std::chrono_literals;
    const Clock::time_point now = Clock::now();
    if (now - start_ < 1s || now - last_ < 100ms) return;
    last_ = now;
    shown_ = true;
    tell(fmt::format("\r\x1b[Krun {} of {}, step {} of {}", run_, runs_, done, steps));
  }

  Session& session_;
  int runs_, run_ = 0;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

// Linear interpolation between the two nearest ranks, as numpy.percentile.
double Measurement::percentile(double fraction) const {
  std::vector<double> sorted = milliseconds;
  std::sort(sorted.begin(), sorted.end());
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], rank - static_cast<double>(below));
}

double Measurement::mean() const {
  return std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0) /
         static_cast<double>(milliseconds.size());
}

Measurement measure(Session& session, const NamedTensors& inputs, const RunOptions& options) {
  Measurement result;
  ProgressLine progress(session, options.warmup + options.iterations);
  for (int i = 0; i < options.warmup; ++i) {
    progress.next_run();
    session.run(inputs);
  }
  session.profile(!options.profile.empty());
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.iterations; ++i) {
    progress.next_run();
    const double begin = microseconds_since(start);
    result.outputs = session.run(inputs);
    result.milliseconds.push_back((microseconds_since(start) - begin) / 1000);
    result.peak_tensor_bytes = std::max(result.peak_tensor_bytes, session.peak_bytes());
    for (StepTime step : session.step_times()) {
      step.start_us += begin;
      result.trace.push_back(std::move(step));
    }
  }
  session.profile(false);
  result.peak_process_bytes = peak_resident_bytes();
  return result;
}

std::string chrome_trace(const std::vector<StepTime>& trace) {
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"tid", 1},
                    {"args", {{"name", "redfuser-run"}}}});
  for (const StepTime& step : trace) {
    Json args = {{"kind", step.kind}};
    if (!step.kernels.empty()) args["kernels"] = step.kernels;
    events.push_back({{"name", step.label},
                      {"cat", step.kind},
                      {"ph", "X"},
                      {"ts", step.start_us},
                      {"dur", step.duration_us},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", std::move(args)}});
  }
  const Json root = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace redfuser::tools
