#include "runtime/gpu/tuner.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cuda/nvrtc.h"
#include "runtime/load/fallback.h"

namespace redfuser::runtime {
namespace {

constexpr size_t kEarlierSession = static_cast<size_t>(-1);
// Another choice must be faster than the default by this factor.
constexpr double kGain = 1.02;

// Everything besides a task that times depend on.
std::vector<std::string> machine_of(const GpuProgram& program) {
  const cuda::DeviceInfo& info = program.device()->info();
  std::vector<std::string> machine = {
      info.name, fmt::format("{} multiprocessors", info.multiprocessors),
      fmt::format("compute capability {}", info.architecture), "nvrtc " + cuda::nvrtc_version()};
  if (program.has_products()) machine.push_back("cublaslt " + cuda::ProductLibrary::version());
  if (program.target().portable) machine.push_back("portable");
  if (program.tf32()) machine.push_back("tf32");
  if (program.target().exact_masks) machine.push_back("exact masks");
  if (program.target().exact_products) machine.push_back("exact products");
  return machine;
}

}  // namespace

KernelTuner::KernelTuner(const GpuProgram& program, const SessionOptions& options)
    : program_(program),
      loader_(program.device(), options),
      cache_(cache_options(options), machine_of(program)) {}

bool KernelTuner::knows(const std::vector<TuningTask>& tasks) {
  bool all = true;
  for (const TuningTask& task : tasks) {
    if (findings_.count(task.text)) continue;
    const std::optional<cuda::MeasuredChoice> kept = cache_.load(task.text);
    const bool offered = kept && std::any_of(task.choices.begin(), task.choices.end(),
                                             [&](const codegen::KernelConfig& choice) {
                                               return to_string(choice) == kept->choice;
                                             });
    if (offered) {
      findings_[task.text] = {*kept, kEarlierSession};
    } else {
      all = false;
    }
    if (kept && !offered) {
      notes_.push_back(
          fmt::format("warning: the choice kept in {} is measured again: \"{}\" is "
                      "not offered",
                      cache_.path(task.text), kept->choice));
    }
  }
  return all;
}

std::vector<LoadedGpuStep> KernelTuner::load(const Wanted& wanted) {
  std::vector<codegen::GpuStep> forms;
  // The program's graph accepts no new expressions.
  const ir::Graph own = clone(program_.graph());
  const fuse::Plan& plan = program_.compiled().plan;
  for (const auto& [step, choice] : wanted) {
    forms.push_back(program_.joined().generate(own, plan, step, program_.target(), *choice));
  }
  return loader_.load(std::move(forms));
}

void KernelTuner::note_failure(size_t step, const codegen::KernelConfig& choice,
                               const std::exception_ptr& error) {
  notes_.push_back(fmt::format("warning: \"{}\" is not computed by {}: {}", label(step),
                               to_string(choice), summary_of(error)));
}

void KernelTuner::measure(const std::vector<TuningTask>& tasks, const BoundProgram& shape,
                          const cuda::Stream& stream, cuda::DevicePointer workspace, int64_t room) {
  std::map<size_t, const TuningTask*> measured;  // by step
  std::set<std::string> seen;
  Wanted wanted;
  for (const TuningTask& task : tasks) {
    if (findings_.count(task.text) || !seen.insert(task.text).second) continue;
    measured[task.step] = &task;
    for (size_t i = 1; i < task.choices.size(); ++i) {
      wanted.emplace_back(task.step, &task.choices[i]);
    }
  }
  const std::vector<LoadedGpuStep> loaded = load(wanted);
  const KernelTimer timer(program_.device(), room / 2);
  for (size_t step = 0, next = 0; step < shape.steps(); ++step) {
    shape.enqueue(step, stream, workspace);
    const auto found = measured.find(step);
    if (found == measured.end()) continue;
    std::vector<Form> forms = {{&found->second->choices[0], shape.loaded(step)}};
    for (; next < wanted.size() && wanted[next].first == step; ++next) {
      if (loaded[next].error) note_failure(step, *wanted[next].second, loaded[next].error);
      if (!loaded[next].error) forms.push_back({wanted[next].second, loaded[next].step});
    }
    measure(*found->second, std::move(forms), shape, timer, stream, workspace, room / 2);
  }
  stream.synchronize();
}

void KernelTuner::measure(const TuningTask& task, std::vector<Form> forms,
                          const BoundProgram& shape, const KernelTimer& timer,
                          const cuda::Stream& stream, cuda::DevicePointer workspace, int64_t room) {
  int64_t bytes = 0;
  std::erase_if(forms, [&](const Form& form) {
    return form.choice != &task.choices[0] && shape.scratch_bytes(form.step->form) > room;
  });
  for (const Form& form : forms) {
    bytes = std::max(bytes, shape.scratch_bytes(form.step->form));
  }
  const cuda::Buffer scratch(program_.device(), bytes, "the scratch memory of candidates");
  std::vector<BoundProgram::Calls> calls;
  std::erase_if(forms, [&](const Form& form) {
    try {
      calls.push_back(shape.calls_of(*form.step, task.step, scratch.address()));
      return false;
    } catch (const cuda::NoSuchAlgorithm&) {
      return true;
    }
  });
  const std::vector<KernelTimer::Time> times = timer.time(calls, stream, workspace);
  if (times[0].error) std::rethrow_exception(times[0].error);
  size_t best = 0;
  cuda::MeasuredChoice result;
  for (size_t i = 0; i < forms.size(); ++i) {
    if (times[i].error) {
      note_failure(task.step, *forms[i].choice, times[i].error);
      continue;
    }
    result.measured.emplace_back(to_string(*forms[i].choice), times[i].us);
    if (times[i].us < times[best].us) best = i;
  }
  if (times[best].us * kGain > times[0].us) best = 0;
  result.choice = to_string(*forms[best].choice);
  findings_[task.text] = {result, task.step};
  if (best != 0) forms_[{task.step, result.choice}] = forms[best].step;
  cache_.store(task.text, result);
}

TunedSteps KernelTuner::tuned(const std::vector<TuningTask>& tasks, LoadedSteps defaults) {
  TunedSteps result{std::move(defaults), {}};
  Wanted wanted;
  std::vector<std::string> chosen;
  for (const TuningTask& task : tasks) {
    const Finding& finding = findings_.at(task.text);
    const cuda::MeasuredChoice& measured = finding.measured;
    const StepInfo& info = program_.compiled().steps[task.step];
    result.tunings.push_back({task.step, info.label, info.kind, to_string(task.choices[0]),
                              measured.choice, measured.default_us(), measured.us(),
                              measured.measured, task.estimated_us, finding.step != task.step});
    const auto choice = std::find_if(task.choices.begin(), task.choices.end(), [&](const auto& c) {
      return to_string(c) == measured.choice;
    });
    if (choice == task.choices.begin() || forms_.count({task.step, measured.choice})) continue;
    wanted.emplace_back(task.step, &*choice);
  }
  const std::vector<LoadedGpuStep> loaded = load(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto& [step, choice] = wanted[i];
    if (!loaded[i].error) forms_[{step, to_string(*choice)}] = loaded[i].step;
    if (loaded[i].error) keep_default(step, *choice, loaded[i].error, result.tunings);
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    const auto form = forms_.find({tasks[i].step, result.tunings[i].choice});
    if (form != forms_.end()) result.steps[tasks[i].step] = form->second;
  }
  loader_.release_unused();
  return result;
}

void KernelTuner::keep_default(size_t step, const codegen::KernelConfig& choice,
                               const std::exception_ptr& error, std::vector<StepTuning>& tunings) {
  note_failure(step, choice, error);
  for (StepTuning& tuning : tunings) {
    if (tuning.step != step) continue;
    tuning.choice = tuning.default_choice;
    tuning.us = tuning.default_us;
  }
}

std::vector<std::string> KernelTuner::take_notes() {
  for (; cache_warnings_ < cache_.warnings().size(); ++cache_warnings_) {
    notes_.push_back("warning: " + cache_.warnings()[cache_warnings_]);
  }
  for (std::string& note : loader_.take_notes()) notes_.push_back(std::move(note));
  return std::exchange(notes_, {});
}

}  // namespace redfuser::runtime
