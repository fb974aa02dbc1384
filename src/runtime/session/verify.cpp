#include "redfuser/verify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "onnx/import/import.h"
#include "ops/op_def.h"
#include "reference/execute/evaluation.h"
#include "reference/expressions/lanes.h"
#include "runtime/facts/step_bounds.h"
#include "runtime/session/make_executor.h"

namespace redfuser {
namespace {

Program unfused_program(const Model& model) {
  CompileOptions options;
  options.fuse = false;
  return compile(model, options);
}

using reference::Evaluation;
using reference::Rounding;

class Verifier {
 public:
  Verifier(const Model& model, const Program& program, const NamedTensors& inputs,
           const Tolerance& tolerance, const SessionOptions& options)
      : program_(program.handle()),
        unfused_(unfused_program(model)),
        graph_(clone(unfused_.handle()->graph())),
        inputs_(inputs),
        options_(options),
        tolerance_(tolerance) {
    tolerance_.units = std::max(tolerance_.units, 2.0);
    for (const StepInfo& step : program_->steps) {
      for (const std::string& name : step.values) step_of_[name] = &step - program_->steps.data();
    }
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      ids_[graph_.values[i].name] = static_cast<ir::ValueId>(i);
    }
  }

  Verification run() {
    run_unfused();
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
  // Fills expected_ in the order of the unfused operators. The CPU runs them too, on the expected
  // values of earlier ones.
  void run_unfused() {
    SessionOptions options = options_;
    options.device = "cpu";
    const auto executor = make_executor(unfused_.handle(), options);
    executor->on_value = [this](const std::string& name, const Tensor& value) {
      if (step_of_.count(name) == 0) return Tensor();
      unfused_values_[name] = value;
      return expected_[name] = expectation(name, value);
    };
    executor->run(inputs_);
  }

  // Sizes that depend on values may differ between the two; the CPU's value is then expected.
  Tensor expectation(const std::string& name, const Tensor& unfused) {
    try {
      const Tensor exact =
          reference::rounded(evaluated(name, reference::Rounding::Never, 0), unfused.dtype());
      if (exact.dims() == unfused.dims()) return exact;
      uncovered_[name] = "its sizes differ in fp64";
    } catch (const UserError& reason) {
      uncovered_[name] = reason.what();
    }
    return unfused;
  }

  Tensor evaluated(const std::string& name, reference::Rounding rounding, int side) const {
    const reference::Evaluation::Given given = [this](ir::ValueId value) {
      return this->given(value);
    };
    return reference::Evaluation(graph_, rounding).evaluate(ids_.at(name), given, side);
  }

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
    const auto uncovered = uncovered_.find(name);
    if (uncovered != uncovered_.end()) {
      result_.against_cpu.push_back(fmt::format("{}: {}", name, uncovered->second));
      comparison.note = fmt::format("compared with the CPU's unfused value: {}", uncovered->second);
    } else if (!comparison.passed && comparison.problem.empty()) {
      decide_wide(name, got, comparison);
    }
    if (comparison.passed) return;
    if (result_.failed.empty()) {
      const StepInfo& step = program_->steps[static_cast<size_t>(step_of_.at(name))];
      result_.first_label = step.label;
      result_.first_kind = step.kind;
    }
    result_.failed.push_back(std::move(comparison));
  }

  void decide_wide(const std::string& name, const Tensor& got, Comparison& comparison) {
    const Tensor wide = evaluated(name, reference::Rounding::Never, 0);
    // Other sizes, which may not fit each other, tell nothing.
    const auto or_wide = [&](Rounding rounding, int side) {
      try {
        const Tensor other = evaluated(name, rounding, side);
        return other.dims() == wide.dims() ? other : wide;
      } catch (const UserError&) {
        return wide;
      }
    };
    const Tensor stepwise = or_wide(Rounding::EveryNode, 0);
    const runtime::ReferenceValues expected{reference::rounded(stepwise, got.dtype()), wide,
                                            or_wide(Rounding::Never, 1),
                                            or_wide(Rounding::Never, -1)};
    comparison = compare_with(name, got, expected, unfused_values_.at(name), tolerance_);
    ++result_.decided_wide;
  }

  // Inputs of the program's steps: expected values.
  const Tensor* given(ir::ValueId id) const {
    const std::string& name = graph_.values[static_cast<size_t>(id)].name;
    const auto expected = expected_.find(name);
    if (expected != expected_.end()) return &expected->second;
    const auto input = inputs_.find(name);
    return input != inputs_.end() ? &input->second : nullptr;
  }

  std::shared_ptr<const runtime::CompiledProgram> program_;
  Program unfused_;
  const ir::Graph graph_;  // the unfused one
  const NamedTensors& inputs_;
  SessionOptions options_;
  Tolerance tolerance_;
  std::map<std::string, ptrdiff_t> step_of_;  // by names of values that the program computes
  std::map<std::string, ir::ValueId> ids_;
  NamedTensors expected_, unfused_values_;
  std::map<std::string, std::string> uncovered_;  // by value: why the CPU's result is expected
  std::set<ptrdiff_t> compared_steps_;
  Verification result_;
};

}  // namespace

Verification verify_steps(const Model& model, const Program& program, const NamedTensors& inputs,
                          const Tolerance& tolerance, const SessionOptions& options) {
  RF_CHECK(program.handle() != nullptr, "verify_steps: the program is empty");
  if (options.device == "reference") {
    user_error("verify compares the steps of a program, and a session on reference runs none");
  }
  Verification result;
  result.reason = program.handle()->model->run_time_structure();
  if (!result.reason.empty()) return result;
  try {
    return Verifier(model, program, inputs, tolerance, options).run();
  } catch (const NeedsValues& reason) {
    result.reason = reason.what();
    return result;
  }
}

}  // namespace redfuser
