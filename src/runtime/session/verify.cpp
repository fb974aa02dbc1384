#include "redfuser/verify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "onnx/import/import.h"
#include "ops/op_def.h"
#include "passes/precision/wide_evaluation.h"
#include "runtime/program/executor.h"
#include "runtime/program/step_bounds.h"

namespace redfuser {
namespace {

Program unfused_program(const Model& model) {
  CompileOptions options;
  options.fuse = false;
  return compile(model, options);
}

NamedTensors values_of(const Program& program, const std::vector<std::string>& names,
                       const NamedTensors& inputs, SessionOptions options) {
  options.device = "cpu";
  Session session(program, options);
  session.keep_values(names);
  session.run(inputs);
  return session.kept_values();
}

class Verifier {
 public:
  Verifier(const Model& model, const Program& program, const NamedTensors& inputs,
           const Tolerance& tolerance, const SessionOptions& options)
      : program_(program.handle()),
        unfused_(unfused_program(model)),
        graph_(unfused_.handle()->graph()),
        inputs_(inputs),
        options_(options),
        tolerance_(tolerance),
        wide_(graph_, options.threads) {
    tolerance_.units = std::max(tolerance_.units, 2.0);
    std::vector<std::string> names;
    for (const StepInfo& step : program_->steps) {
      names.insert(names.end(), step.values.begin(), step.values.end());
      for (const std::string& name : step.values) step_of_[name] = &step - program_->steps.data();
    }
    expected_ = values_of(unfused_, names, inputs, options);
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      ids_[graph_.values[i].name] = static_cast<ir::ValueId>(i);
    }
  }

  Verification run() {
    const auto executor = make_executor(program_, options_);
    executor->on_value = [this](const std::string& name, const Tensor& value) {
      const auto expected = expected_.find(name);
      if (expected == expected_.end()) return Tensor();
      if (!is_random(step_of_.at(name))) check(name, value, expected->second);
      return expected->second;
    };
    executor->run(inputs_);
    result_.steps = static_cast<int>(program_->steps.size());
    result_.compared_steps = static_cast<int>(compared_steps_.size());
    return std::move(result_);
  }

 private:
  bool is_random(ptrdiff_t step) const {
    const std::vector<ir::NodeId>& nodes = program_->plan.steps[static_cast<size_t>(step)].nodes;
    return std::any_of(nodes.begin(), nodes.end(), [this](ir::NodeId node) {
      return program_->graph().nodes[static_cast<size_t>(node)].def->random;
    });
  }

  void check(const std::string& name, const Tensor& got, const Tensor& expected) {
    compared_steps_.insert(step_of_.at(name));
    ++result_.values;
    Comparison comparison = compare(name, got, expected, tolerance_);
    if (!comparison.passed && comparison.problem.empty()) decide_wide(name, got, comparison);
    if (comparison.passed) return;
    if (result_.failed.empty()) {
      const StepInfo& step = program_->steps[static_cast<size_t>(step_of_.at(name))];
      result_.first_label = step.label;
      result_.first_kind = step.kind;
    }
    result_.failed.push_back(std::move(comparison));
  }

  // Where an operator has no form in wider floats, or sizes follow from values that differ, the
  // comparison stays.
  void decide_wide(const std::string& name, const Tensor& got, Comparison& comparison) {
    const ir::ValueId id = ids_.at(name);
    const passes::WideEvaluation::Given given = [this](ir::ValueId value) {
      return this->given(value);
    };
    try {
      const Tensor wide = wide_.evaluate(id, given, 0);
      if (wide.dims() != got.dims()) return;
      const auto moved = [&](int side) {
        const Tensor other = wide_.evaluate(id, given, side);
        return other.dims() == wide.dims() ? other : wide;
      };
      comparison = runtime::compare_with(name, got, {expected_.at(name), wide, moved(1), moved(-1)},
                                         tolerance_);
      ++result_.decided_wide;
    } catch (const UserError& reason) {
      comparison.note = fmt::format("no evaluation in wider floats: {}", reason.what());
    }
  }

  // What steps of the program are given.
  const Tensor* given(ir::ValueId id) const {
    const std::string& name = graph_.values[static_cast<size_t>(id)].name;
    const auto expected = expected_.find(name);
    if (expected != expected_.end()) return &expected->second;
    const auto input = inputs_.find(name);
    return input != inputs_.end() ? &input->second : nullptr;
  }

  std::shared_ptr<const runtime::CompiledProgram> program_;
  Program unfused_;
  const ir::Graph& graph_;  // the unfused one
  const NamedTensors& inputs_;
  SessionOptions options_;
  Tolerance tolerance_;
  passes::WideEvaluation wide_;
  std::map<std::string, ptrdiff_t> step_of_;  // by the values that the program computes
  std::map<std::string, ir::ValueId> ids_;
  NamedTensors expected_;
  std::set<ptrdiff_t> compared_steps_;
  Verification result_;
};

}  // namespace

Verification verify_steps(const Model& model, const Program& program, const NamedTensors& inputs,
                          const Tolerance& tolerance, const SessionOptions& options) {
  RF_CHECK(program.handle() != nullptr, "verify_steps: the program is empty");
  Verification result;
  result.reason = program.handle()->model->needs_values;
  if (!result.reason.empty()) return result;
  try {
    return Verifier(model, program, inputs, tolerance, options).run();
  } catch (const NeedsValues& reason) {
    result.reason = reason.what();
    return result;
  }
}

}  // namespace redfuser
