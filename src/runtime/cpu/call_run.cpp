#include "runtime/cpu/call_run.h"

#include <algorithm>

#include "base/error.h"
#include "base/tensors/room.h"
#include "cpu/opaque/opaque_shapes.h"
#include "ir/evaluate.h"
#include "onnx/check/control_checks.h"
#include "runtime/cpu/stacks.h"
#include "runtime/program/executor.h"

namespace redfuser::runtime {
namespace {

const onnx::ControlCall& call_of(const CompiledProgram& program, const ir::Node& node) {
  return *program.model->calls[static_cast<size_t>(onnx::call_number(node))];
}

const ir::Node& node_of(const CompiledProgram& program, size_t step) {
  const auto& opaque = std::get<fuse::OpaqueStep>(program.plan.steps[step].kind);
  return program.graph().nodes[static_cast<size_t>(opaque.node)];
}

template <typename T>
Tensor scalar(DType dtype, T value) {
  Tensor tensor(dtype, {});
  *tensor.as<T>() = value;
  return tensor;
}

bool is_bound(ir::Expr size, std::span<const int64_t> symbols) {
  bool bound = true;
  visit(size, [&](ir::Expr e) {
    bound = bound && (e->op != ir::ExprOp::Symbol || symbols[static_cast<size_t>(e->integer)] >= 0);
  });
  return bound;
}

// The outputs of the iterations so far: for each, the part of every iteration.
class Parts {
 public:
  Parts(const onnx::ControlCall& call, const std::string& path)
      : call_(call), path_(path), parts_(call.without_iterations.size()) {}

  // The last results of a body.
  void add(std::vector<Tensor>& results) {
    const size_t first = results.size() - parts_.size();
    for (size_t o = 0; o < parts_.size(); ++o) {
      // No part keeps memory that has room for more.
      Tensor& part = results[first + o];
      parts_[o].push_back(room_of(part) != nullptr ? copied(part) : std::move(part));
    }
    results.resize(first);
  }

  // Appends the stacks to the final states.
  void stack(std::vector<Tensor>& results) const {
    for (size_t o = 0; o < parts_.size(); ++o) {
      if (!parts_[o].empty()) {
        results.push_back(stack_of(parts_[o], call_.output_axes[o], call_.output_backwards[o] != 0,
                                   fmt::format("{}: {}", path_, call_.where)));
        continue;
      }
      if (!call_.without_iterations[o].defined()) {
        user_error("{}: {}: the type of its output without iterations is open", path_, call_.where);
      }
      results.push_back(call_.without_iterations[o]);
    }
  }

 private:
  const onnx::ControlCall& call_;
  const std::string& path_;
  std::vector<std::vector<Tensor>> parts_;
};

}  // namespace

StepFacts facts_of(std::span<const BodyRun> bodies) {
  StepFacts facts;
  facts.family = "control_flow";
  for (const BodyRun& body : bodies) body.collect(facts.kernels);
  facts.configuration = fmt::format("{} steps inside", facts.kernels.size());
  return facts;
}

CallRun::CallRun(const CompiledProgram& program, size_t step,
                 const std::vector<std::shared_ptr<const BodyPrograms>>& bodies, ThreadPool& pool,
                 bool tune)
    : call_(call_of(program, node_of(program, step))),
      node_(node_of(program, step)),
      path_(program.model->path) {
  for (const auto& body : bodies) bodies_.emplace_back(*body, pool, tune);
}

void CallRun::run(cpu::RunContext& context, int64_t memory_limit, StepObserver* observer) {
  memory_limit_ = memory_limit;
  observer_ = observer;
  for (BodyRun& body : bodies_) body.reset();
  switch (call_.kind) {
    case onnx::ControlCall::Kind::If:
      return set_outputs(context, run_if(context));
    case onnx::ControlCall::Kind::Loop:
      return set_outputs(context, run_loop(context));
    case onnx::ControlCall::Kind::Scan:
      return set_outputs(context, run_scan(context));
  }
}

std::vector<Tensor> CallRun::run_body(size_t body, const cpu::RunContext& context,
                                      std::span<const Tensor> formals) {
  if (observer_ != nullptr) observer_->working();
  inputs_.clear();
  for (const Tensor& formal : formals) inputs_.push_back(&formal);
  for (const size_t input : call_.captured[body]) {
    inputs_.push_back(&context.values[static_cast<size_t>(node_.inputs[input])]);
  }
  return bodies_[body].run(inputs_, memory_limit_, observer_);
}

int64_t CallRun::decided(const Tensor& tensor, const std::string& name, const char* what) const {
  onnx::check_decision(tensor.dtype(), tensor.size(), name, what,
                       fmt::format("{}: {}", path_, call_.where));
  return tensor.dtype() == DType::Bool ? *tensor.as<bool>() : *tensor.as<int64_t>();
}

int64_t CallRun::decided(const cpu::RunContext& context, size_t input, const char* what) const {
  const auto id = static_cast<size_t>(node_.inputs[input]);
  return decided(context.values[id], context.graph.values[id].name, what);
}

std::vector<Tensor> CallRun::run_if(const cpu::RunContext& context) {
  return run_body(decided(context, 0, "the condition") != 0 ? 1 : 0, context, {});
}

std::vector<Tensor> CallRun::run_loop(const cpu::RunContext& context) {
  const auto has = [&](size_t input) { return node_.inputs[input] != ir::kAbsent; };
  const int64_t trips = has(0) ? decided(context, 0, "the trip count") : INT64_MAX;
  bool going = !has(1) || decided(context, 1, "the condition") != 0;
  std::vector<Tensor> states;
  for (size_t s = 0; s < call_.states; ++s) {
    states.push_back(context.values[static_cast<size_t>(node_.inputs[2 + s])]);
  }
  Parts parts(call_, path_);
  const Tensor on = scalar(DType::Bool, true);
  int64_t idle = 0;
  for (int64_t trip = 0; trip < trips && going; ++trip) {
    std::vector<Tensor> formals;
    formals.reserve(states.size() + 2);
    formals.push_back(scalar(DType::Int64, trip));
    formals.push_back(on);
    std::move(states.begin(), states.end(), std::back_inserter(formals));
    std::vector<Tensor> results = run_body(0, context, formals);
    going = decided(results[0], "", "the condition after an iteration") != 0;
    results.erase(results.begin());
    parts.add(results);
    states = std::move(results);
    idle = bodies_[0].is_idle() ? idle + 1 : 0;
    if (idle > onnx::kMaxNodes) {
      user_error("{}: {}: {} iterations compute nothing", path_, call_.where, onnx::kMaxNodes);
    }
  }
  parts.stack(states);
  return states;
}

std::vector<Tensor> CallRun::run_scan(const cpu::RunContext& context) {
  std::vector<Tensor> states, scanned;
  for (size_t i = 0; i < call_.own_inputs; ++i) {
    (i < call_.states ? states : scanned)
        .push_back(context.values[static_cast<size_t>(node_.inputs[i])]);
  }
  std::vector<int64_t> axes = call_.input_axes;
  int64_t length = -1;
  for (size_t i = 0; i < scanned.size(); ++i) {
    if (axes[i] < 0) axes[i] += static_cast<int64_t>(scanned[i].dims().size());
    const int64_t size = scanned[i].dims()[static_cast<size_t>(axes[i])];
    if (length >= 0 && size != length) {
      user_error("{}: {}: its inputs are of lengths {} and {}", path_, call_.where, length, size);
    }
    length = size;
  }
  Parts parts(call_, path_);
  for (int64_t step = 0; step < length; ++step) {
    std::vector<Tensor> formals = std::move(states);
    for (size_t i = 0; i < scanned.size(); ++i) {
      const int64_t at = call_.input_backwards[i] != 0 ? length - 1 - step : step;
      formals.push_back(slice_of(scanned[i], axes[i], at));
    }
    states = run_body(0, context, formals);
    parts.add(states);
  }
  parts.stack(states);
  return states;
}

// The types of outputs are those of the import, where sizes may have been taken to agree that do
// not.
void CallRun::set_outputs(cpu::RunContext& context, std::vector<Tensor> results) const {
  for (size_t o = 0; o < node_.outputs.size(); ++o) {
    if (node_.outputs[o] == ir::kAbsent) continue;
    const auto id = static_cast<size_t>(node_.outputs[o]);
    const ir::Value& value = context.graph.values[id];
    const Tensor& result = results[o];
    bool fits = result.dtype() == value.dtype && result.dims().size() == value.shape.size();
    if (fits && is_list(value.dtype)) fits = covers(value.list_form(), form_of(result));
    for (size_t k = 0; fits && k < value.shape.size(); ++k) {
      const ir::Expr size = value.shape[k];
      if (!is_bound(size, context.symbols)) continue;
      fits = evaluate_size(size, context.symbols) == result.dims()[k];
    }
    if (!fits) {
      needs_values("{}: {}: output \"{}\" is {}, which its other bodies or iterations do not show",
                   path_, call_.where, value.name, describe(result));
    }
    bind_shape(context, node_.outputs[o], result.dims());
    context.values[id] = std::move(results[o]);
  }
}

void CallRun::restart() {
  for (BodyRun& body : bodies_) body.restart();
}

std::vector<KernelTime> CallRun::times() const {
  std::vector<KernelTime> times;
  for (const BodyRun& body : bodies_) body.collect(times);
  return times;
}

int64_t CallRun::peak() const {
  int64_t peak = 0;
  for (const BodyRun& body : bodies_) peak = std::max(peak, body.peak());
  return peak;
}

}  // namespace redfuser::runtime
