// redfuser-run: runs an ONNX model, checks it, times it.
#include <filesystem>
#include <optional>

#include "assertion.h"
#include "redfuser/device.h"
#include "redfuser/io.h"
#include "redfuser/memory_limit.h"
#include "redfuser/trace.h"
#include "resource_limits.h"
#include "run_generate.h"
#include "run_inputs.h"
#include "run_page.h"
#include "run_report.h"
#include "time_view.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

Program compile_for(const Model& model, const RunOptions& options) {
  CompileOptions compile_options;
  compile_options.fuse = options.fuse;
  compile_options.certify = options.certify;
  return compile(model, compile_options);
}

// What fails with sizes that nobody chose is told with them.
template <typename Body>
auto with_assumed_sizes(const Model& model, const RunOptions& options, const Body& body) {
  try {
    return body();
  } catch (const UserError& error) {
    const std::string sizes = assumed_sizes(model, options);
    if (sizes.empty()) throw;
    throw UserError(error.what() + sizes);
  }
}

RunResult run_and_check(const Model& model, const Program& program, NamedTensors inputs,
                        const RunOptions& options, TimeLimit& time_limit) {
  // Read before the run: a missing file should not cost one.
  NamedTensors expected;
  if (!options.compare.empty()) {
    expected = load_tensors(options.compare, model, Role::Outputs);
  }
  RunResult result;
  result.inputs = std::move(inputs);
  Session session(program, options.session);
  size_t told = 0;
  const auto tell_notes = [&] {
    for (; told < session.notes().size(); ++told) {
      tell(session.notes()[told] + "\n");
    }
  };
  tell_notes();
  result.device = session.device();
  const auto target = session.versions().find("target");
  if (target != session.versions().end()) result.target = target->second;
  std::function<void(int)> on_step;
  if (options.time_limit > 0 && !program.steps().empty()) {
    on_step = [&](int number) {
      const auto last = static_cast<int>(program.steps().size()) - 1;
      time_limit.in_step(&program.steps()[static_cast<size_t>(std::min(number, last))].label);
    };
  }
  result.measurement = with_assumed_sizes(
      model, options, [&] { return measure(session, result.inputs, options, on_step); });
  time_limit.in_step(nullptr);
  tell_notes();
  for (const std::string& note : result.measurement.notes) tell(note + "\n");
  result.tunings = session.tunings();
  if (options.explain || !options.report.empty()) {
    result.steps = session.step_facts();
    add_profile(profiled_steps(result.measurement.profile), result.steps);
  }
  if (!options.compare.empty()) {
    result.comparisons = compare(result.measurement.outputs, expected, options.tolerance);
  }
  if (options.verify) {
    result.verification =
        verify_steps(model, program, result.inputs, options.tolerance, options.session);
  }
  return result;
}

int run(int argc, char** argv) {
  const std::optional<RunOptions> parsed = parse_run_options(argc, argv);
  if (!parsed) return kSuccess;
  const RunOptions& options = *parsed;
  const Words words(takes_stdout({{"--json", options.json},
                                  {"--explain", options.explain.value_or("")},
                                  {"--profile", options.profile},
                                  {"--report", options.report},
                                  {"--dump", options.dump.empty() ? "" : "-"}}));
  TimeLimit time_limit(options.time_limit);
  // Of the model, its inputs and its results together.
  const MemoryLimit memory_limit(tensor_limit(options.session.memory_limit));
  std::optional<GpuWarmup> gpu;
  std::error_code absent;
  const bool runs = options.dump.empty() && std::filesystem::exists(options.model, absent);
  if (options.session.device != "cpu" && runs) gpu.emplace();
  Model model = Model::load(options.model);
  NamedTensors inputs;
  const bool dumps = !options.dump.empty();
  if (!options.generation.wanted && (!dumps || !options.inputs.empty())) {
    inputs = gather_inputs(model, options);
    model = model_for(model, inputs);
    if (dumps) model = model_of_values(model, inputs);
  }
  const Program program = compile_for(model, options);
  if (!options.dump.empty()) {
    write_output("-", program.dump(options.dump, options.target));
    return kSuccess;
  }
  if (options.generation.wanted) {
    run_generation(model, program, options, words);
    return kSuccess;
  }
  const ReportView report(program.explain());
  const RunResult result = run_and_check(model, program, std::move(inputs), options, time_limit);

  if (!options.outputs.empty()) {
    write_outputs(model, options.outputs, result.measurement.outputs);
  }
  if (!options.profile.empty()) {
    write_output(options.profile, chrome_trace(result.measurement.profile, "redfuser-run"));
  }
  if (!options.report.empty()) {
    write_output(options.report,
                 report_page(program, page_options(program, report, options, result)));
  }
  // The JSON says the same.
  if (options.json != "-") words.say(text_report(model, report, options, result));
  const ReportView explained(options.explain ? program.explain(result.steps, result.device)
                                             : program.explain());
  if (options.explain && !options.explain->empty()) write_output(*options.explain, explained.text);
  if (options.explain && options.explain->empty() && options.json != "-") {
    words.say(explanation(explained));
  }
  if (!options.json.empty()) {
    write_output(options.json, json_report(model, explained, options, result));
  }
  const bool asserted = check_assertions(options.assert_fused, report);
  return result.passed() && asserted ? kSuccess : kFailedCheck;
}

}  // namespace
}  // namespace redfuser::tools

int main(int argc, char** argv) {
  return redfuser::tools::guarded([&] { return redfuser::tools::run(argc, argv); });
}
