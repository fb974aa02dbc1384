#include "run_timing.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "redfuser/device.h"
#include "redfuser/trace.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

using Clock = std::chrono::steady_clock;

// The session's progress: a line on stderr for runs that outlast a second, unless stderr is no
// terminal, and the step that begins.
class ProgressLine {
 public:
  ProgressLine(Session& session, int runs, std::function<void(int)> on_step)
      : session_(session), runs_(runs), on_step_(std::move(on_step)) {
    if (!shows_ && !on_step_) return;
    session_.on_progress([this](int done, int steps) {
      if (on_step_) on_step_(done);
      if (shows_) show(done, steps);
    });
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
  const std::function<void(int)> on_step_;
  const bool shows_ = isatty(STDERR_FILENO) != 0;
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

// Runs of a session that keeps inputs and outputs on the GPU, or of one that does not.
class Runner {
 public:
  Runner(Session& session, const NamedTensors& inputs, bool resident)
      : session_(session), inputs_(inputs), resident_(resident) {
    if (resident_) there_ = session_.to_device(inputs_);
  }

  // The outputs of the run before are released first: their memory, which caches hold, serves the
  // run's own.
  void run() {
    outputs_.clear();
    if (resident_) {
      outputs_there_ = session_.enqueue(there_, {});
      session_.synchronize();
    } else {
      outputs_ = session_.run(inputs_);
    }
  }

  NamedTensors outputs() { return resident_ ? session_.to_host(outputs_there_) : outputs_; }

 private:
  Session& session_;
  const NamedTensors& inputs_;
  bool resident_;
  NamedDeviceTensors there_, outputs_there_;
  NamedTensors outputs_;
};

void add(const std::optional<RunTiming>& timing, Measurement& result) {
  if (!timing) return;
  result.enqueue.push_back(timing->enqueue_us / 1e3);
  result.host_to_device.push_back(timing->host_to_device_us / 1e3);
  result.compute.push_back(timing->compute_us / 1e3);
  result.device_to_host.push_back(timing->device_to_host_us / 1e3);
}

void keep_profile(const Session& session, double begin_us, Measurement& result) {
  result.profile.push_back(since_origin(session.step_times(), begin_us));
}

}  // namespace

Measurement measure(Session& session, const NamedTensors& inputs, const RunOptions& options,
                    std::function<void(int)> on_step) {
  Measurement result;
  const bool profiles = options.profiles();
  const bool on_gpu = session.device_state().has_value();
  const int profiled = profiles && on_gpu ? std::min(options.iterations, kMostProfiles) : 0;
  result.resident = options.resident && on_gpu;
  if (options.resident && !on_gpu) {
    result.notes.push_back("--resident: a run on the CPU copies nothing to a device");
  }
  ProgressLine progress(session, options.warmup + options.iterations + profiled,
                        std::move(on_step));
  Runner runner(session, inputs, result.resident);
  for (int i = 0; i < options.warmup; ++i) {
    progress.next_run();
    runner.run();
  }
  session.time_runs(true);
  session.profile(profiles && !on_gpu);
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < options.iterations; ++i) {
    progress.next_run();
    const double begin = microseconds_since(start);
    runner.run();
    result.wall.push_back((microseconds_since(start) - begin) / 1e3);
    add(session.run_timing(), result);
    result.peak_tensor_bytes = std::max(result.peak_tensor_bytes, session.peak_bytes());
    if (profiles && !on_gpu) keep_profile(session, begin, result);
  }
  result.state = session.device_state();
  session.time_runs(false);
  result.outputs = runner.outputs();
  session.profile(profiles);
  for (int i = 0; i < profiled; ++i) {
    progress.next_run();
    const double begin = microseconds_since(start);
    session.run(inputs);
    keep_profile(session, begin, result);
  }
  session.profile(false);
  result.peak_process_bytes = peak_resident_bytes();
  return result;
}

}  // namespace redfuser::tools
