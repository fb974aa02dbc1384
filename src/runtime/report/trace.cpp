#include <nlohmann/json.hpp>

#include "redfuser/trace.h"

namespace redfuser {
namespace {

using nlohmann::ordered_json;

constexpr int kSteps = 1, kKernels = 2;  // threads of the trace

ordered_json thread_name(const char* what, int thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", thread}, {"args", {{"name", name}}}};
}

ordered_json span(const std::string& name, const std::string& kind, int thread, double start_us,
                  double duration_us, ordered_json args) {
  return {{"name", name},       {"cat", kind}, {"ph", "X"},     {"ts", start_us},
          {"dur", duration_us}, {"pid", 1},    {"tid", thread}, {"args", std::move(args)}};
}

void add_step(const StepTime& step, ordered_json& events) {
  ordered_json args = {{"kind", step.kind}};
  if (step.bytes > 0) args["bytes"] = step.bytes;
  for (const KernelTime& kernel : step.kernels) args["kernels"].push_back(kernel.name);
  events.push_back(
      span(step.label, step.kind, kSteps, step.start_us, step.duration_us, std::move(args)));
  for (const KernelTime& kernel : step.kernels) {
    events.push_back(span(kernel.name, step.kind, kKernels, kernel.start_us, kernel.duration_us,
                          {{"step", step.label}}));
  }
}

}  // namespace

std::string chrome_trace(const std::vector<std::vector<StepTime>>& runs,
                         const std::string& process) {
  ordered_json events = ordered_json::array({thread_name("process_name", kSteps, process),
                                             thread_name("thread_name", kSteps, "steps"),
                                             thread_name("thread_name", kKernels, "kernels")});
  for (const std::vector<StepTime>& run : runs) {
    for (const StepTime& step : run) add_step(step, events);
  }
  const ordered_json root = {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}};
  return root.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::vector<StepTime> since_origin(std::vector<StepTime> steps, double begin_us) {
  for (StepTime& step : steps) {
    step.start_us += begin_us;
    for (KernelTime& kernel : step.kernels) kernel.start_us += begin_us;
  }
  return steps;
}

}  // namespace redfuser
