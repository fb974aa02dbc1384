#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/error.h"
#include "fuse/make_plan.h"
#include "onnx/import/import.h"
#include "passes/pipeline.h"
#include "runtime/program/compiled_program.h"
#include "runtime/program/make_guards.h"

namespace redfuser {
namespace {

class SymbolCollector {
 public:
  explicit SymbolCollector(runtime::CompiledProgram& program) : program_(program) {}

  // The symbols of `expr`, whose names it records.
  std::vector<int64_t> collect(std::span<const ir::Expr> shape) {
    found_.clear();
    seen_.clear();
    for (const ir::Expr dim : shape) visit(dim);
    std::sort(found_.begin(), found_.end());
    return found_;
  }

 private:
  void visit(ir::Expr expr) {
    if (expr->is_constant() || !seen_.insert(expr).second) return;
    if (expr->op == ir::ExprOp::Symbol) {
      const size_t number = static_cast<size_t>(expr->integer);
      if (number >= program_.symbol_names.size()) program_.symbol_names.resize(number + 1);
      program_.symbol_names[number] = program_.graph().pool->symbol_name(expr);
      found_.push_back(expr->integer);
    }
    for (const ir::Expr arg : expr->args) visit(arg);
  }

  runtime::CompiledProgram& program_;
  std::vector<int64_t> found_;
  std::unordered_set<ir::Expr> seen_;
};

void collect_symbols(runtime::CompiledProgram& program) {
  SymbolCollector collector(program);
  for (const ir::Value& value : program.graph().values) {
    program.shape_symbols.push_back(collector.collect(value.shape));
    collector.collect(value.elements);
  }
  for (const fuse::Append& append : program.appends) {
    collector.collect(std::array{append.begin, append.room});
  }
}

std::string kind_of(const fuse::Step& step, const cascade::Report& report) {
  if (const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind)) {
    const bool reported =
        cascade->report >= 0 && static_cast<size_t>(cascade->report) < report.fused.size();
    return reported ? report.fused[static_cast<size_t>(cascade->report)].region_class : "other";
  }
  static constexpr const char* kKinds[] = {"map", "reduce", "product", "", "opaque", "alias"};
  static_assert(std::variant_size_v<fuse::StepKind> == std::size(kKinds));
  return kKinds[step.kind.index()];
}

void make_steps(runtime::CompiledProgram& program) {
  const ir::Graph& graph = program.graph();
  for (const fuse::Step& step : program.plan.steps) {
    StepInfo info;
    info.label = step.label;
    info.kind = kind_of(step, program.plan.report);
    info.fused = std::holds_alternative<fuse::CascadeStep>(step.kind);
    for (const ir::ValueId value : step.writes) {
      info.values.push_back(graph.values[static_cast<size_t>(value)].name);
    }
    program.steps.push_back(std::move(info));
  }
}

const onnx::ControlCall* call_of(const runtime::CompiledProgram& program, const fuse::Step& step) {
  const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
  if (opaque == nullptr) return nullptr;
  const int64_t number =
      onnx::call_number(program.graph().nodes[static_cast<size_t>(opaque->node)]);
  return number < 0 ? nullptr : program.model->calls[static_cast<size_t>(number)].get();
}

void make_bodies(runtime::CompiledProgram& program) {
  const ir::Graph& graph = program.graph();
  for (size_t i = 0; i < program.plan.steps.size(); ++i) {
    const onnx::ControlCall* call = call_of(program, program.plan.steps[i]);
    if (call == nullptr) continue;
    const ir::NodeId id = std::get<fuse::OpaqueStep>(program.plan.steps[i].kind).node;
    const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
    program.plan.report.unfused.push_back(
        {{node.name}, "a run decides what it computes; its bodies are programs of their own", ""});
    for (size_t b = 0; b < call->bodies.size(); ++b) {
      std::vector<Tensor> constants(call->bodies[b].formals.size());
      for (const size_t input : call->captured[b]) {
        constants.push_back(graph.values[static_cast<size_t>(node.inputs[input])].constant);
      }
      // Shares the ownership of the call.
      const std::shared_ptr<const onnx::Subgraph> body(
          program.model->calls[static_cast<size_t>(onnx::call_number(node))], &call->bodies[b]);
      program.bodies[i].push_back(std::make_shared<runtime::BodyPrograms>(
          program.model, body, std::move(constants), program.options));
    }
  }
}

// For a model that needs values.
void make_without_plan(runtime::CompiledProgram& program) {
  const onnx::LoadedModel& model = *program.model;
  program.plan.graph = std::make_shared<ir::Graph>(clone(model.graph));
  program.plan.report.unfused.push_back({{}, model.needs_values, ""});
  program.plan.report.ops_before = program.plan.report.ops_after = model.operator_counts;
  program.steps.push_back({runtime::kWholeGraph, "opaque", false, {}});
}

}  // namespace

Program compile(const Model& model, const CompileOptions& options) {
  RF_CHECK(model.handle() != nullptr, "compile: the model is empty");
  auto compiled = std::make_shared<runtime::CompiledProgram>();
  compiled->model = model.handle();
  compiled->options = options;
  compiled->by_sizes = std::make_unique<runtime::BodyPrograms>(
      compiled->model, nullptr, std::vector<Tensor>(model.inputs().size()), options);
  compiled->overriding = std::make_unique<runtime::OverridingPrograms>(compiled->model, options);
  if (!model.handle()->needs_values.empty()) {
    make_without_plan(*compiled);
    Program program;
    program.impl_ = std::move(compiled);
    return program;
  }
  auto graph = std::make_shared<ir::Graph>(clone(model.handle()->graph));
  passes::optimize(*graph);
  if (options.fuse) passes::optimize_for_execution(*graph);
  fuse::PlanOptions plan_options;
  plan_options.fuse = options.fuse;
  plan_options.certify = options.certify;
  compiled->plan = make_plan(std::move(graph), plan_options);
  cascade::Report& report = compiled->plan.report;
  if (report.ops_before.empty()) report.ops_before = model.operator_counts();
  compiled->appends = fuse::find_appends(compiled->plan);
  collect_symbols(*compiled);
  make_steps(*compiled);
  make_guards(*compiled);
  make_bodies(*compiled);
  if (report.ops_after.empty()) {
    for (const StepInfo& step : compiled->steps) ++report.ops_after[step.kind];
  }
  Program program;
  program.impl_ = std::move(compiled);
  return program;
}

const std::vector<StepInfo>& Program::steps() const { return impl_->steps; }

}  // namespace redfuser
