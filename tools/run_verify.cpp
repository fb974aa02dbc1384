#include "run_verify.h"

#include <algorithm>

namespace redfuser::tools {
namespace {

NamedTensors kept_values(const Program& program, const std::vector<std::string>& names,
                         const NamedTensors& inputs, const SessionOptions& session_options) {
  Session session(program, session_options);
  session.keep_values(names);
  session.run(inputs);
  return session.kept_values();
}

}  // namespace

Verification verify_fusions(const Model& model, const Program& fused, const NamedTensors& inputs,
                            const RunOptions& options) {
  std::vector<std::string> names;
  for (const StepInfo& step : fused.steps()) {
    names.insert(names.end(), step.values.begin(), step.values.end());
  }
  CompileOptions unfused_options;
  unfused_options.fuse = false;
  const Program unfused = compile(model, unfused_options);
  const NamedTensors got = kept_values(fused, names, inputs, options.session);
  SessionOptions reference = options.session;
  reference.device = "cpu";
  const NamedTensors expected = kept_values(unfused, names, inputs, reference);

  Verification result;
  for (const StepInfo& step : fused.steps()) {
    for (const std::string& name : step.values) {
      const auto value = got.find(name), reference = expected.find(name);
      if (value == got.end() || reference == expected.end()) continue;
      ++result.compared;
      Comparison comparison = compare(name, value->second, reference->second, options.tolerance);
      if (comparison.passed) continue;
      if (result.failed.empty()) {
        result.first_label = step.label;
        result.first_kind = step.kind;
      }
      result.failed.push_back(std::move(comparison));
    }
  }
  return result;
}

}  // namespace redfuser::tools
