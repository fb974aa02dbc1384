// The stages of the pipeline as text.
#include <fmt/ranges.h>

#include "base/error.h"
#include "codegen/core/print_step.h"
#include "codegen/core/target_table.h"
#include "codegen/joined/joined_steps.h"
#include "codegen/orders/memory_orders.h"
#include "onnx/import/import.h"
#include "passes/pipeline.h"
#include "runtime/load/host_part.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

using runtime::CompiledProgram;

std::string heading(const CompiledProgram& program, size_t step, const char* mark = "#") {
  const StepInfo& info = program.steps[step];
  return fmt::format("{} step {}: {} ({})\n", mark, step, info.label, info.kind);
}

std::string cascades_text(const CompiledProgram& program, bool streaming) {
  std::string text;
  for (size_t i = 0; i < program.plan.steps.size(); ++i) {
    const auto* step = std::get_if<fuse::CascadeStep>(&program.plan.steps[i].kind);
    if (step == nullptr) continue;
    const cascade::Streaming& form = step->streaming;
    text += heading(program, i);
    const ir::ExprPool& pool = *program.graph().pool;
    text += streaming ? to_string(pool, form) : to_string(pool, form.cascade);
    if (!text.ends_with('\n')) text += '\n';
    text += '\n';
  }
  return text;
}

std::string import_text(const CompiledProgram& program, const codegen::Target&) {
  return to_string(program.model->graph);
}

std::string passes_text(const CompiledProgram& program, const codegen::Target&) {
  ir::Graph graph = clone(program.model->graph);
  std::vector<passes::PassRecord> log;
  passes::optimize(graph, &log);
  if (program.options.fuse) passes::optimize_for_execution(graph, &log);
  return fmt::format("import: {} nodes\n", program.model->graph.nodes.size()) + to_string(log);
}

std::string graph_text(const CompiledProgram& program, const codegen::Target&) {
  return to_string(program.graph());
}

std::string cascade_text(const CompiledProgram& program, const codegen::Target&) {
  return cascades_text(program, false);
}

std::string streaming_text(const CompiledProgram& program, const codegen::Target&) {
  return cascades_text(program, true);
}

std::string plan_text(const CompiledProgram& program, const codegen::Target&) {
  return to_string(program.plan);
}

// The `print`ed device form of a step, or the reason why it has none.
template <class Print>
class GpuText {
 public:
  GpuText(const CompiledProgram& whole, const codegen::Target& target, const char* mark,
          const Print& print)
      : whole_(whole), target_(target), mark_(mark), print_(print), texts_(whole.steps.size()) {}

  // Every step behind its heading, in the order of the whole program.
  std::string run() {
    runtime::visit_parts(whole_, [&](const CompiledProgram& part,
                                     const std::vector<size_t>& numbers) { add(part, numbers); });
    std::string text;
    for (size_t i = 0; i < texts_.size(); ++i) {
      text += heading(whole_, i, mark_) + texts_[i] + '\n';
    }
    return text;
  }

 private:
  void add(const CompiledProgram& program, const std::vector<size_t>& numbers) {
    const ir::Graph own = clone(program.graph());  // the program's takes no new expressions
    codegen::Target placed = target_;
    codegen::place_values(placed, program.plan, program.appends, {});
    const codegen::JoinedSteps joined(own, program.plan, placed, {});
    const runtime::HostPart host(program);
    for (size_t i = 0; i < program.plan.steps.size(); ++i) {
      std::string& text = texts_[numbers[i]];
      try {
        if (!host.reason(i).empty()) {
          const fuse::Step& step = program.plan.steps[i];
          const ir::Node& node = own.nodes[static_cast<size_t>(step.nodes.front())];
          user_error("[{}] node \"{}\": {}", node.op, node.name, host.reason(i));
        }
        const codegen::GpuStep form = joined.generate(own, program.plan, i, placed);
        if (host.binds_sizes_of(form)) {
          user_error("a size in \"{}\" depends on data", program.steps[i].label);
        }
        text = print_(numbers[i], form);
      } catch (const UserError& error) {
        text = fmt::format("{} none on a GPU: {}\n", mark_, error.what());
      }
    }
  }

  const CompiledProgram& whole_;
  const codegen::Target& target_;
  const char* mark_;
  const Print& print_;
  std::vector<std::string> texts_;
};

template <class Print>
std::string gpu_text(const CompiledProgram& program, const codegen::Target& target,
                     const char* mark, const Print& print) {
  return GpuText(program, target, mark, print).run();
}

std::string kernels_text(const CompiledProgram& program, const codegen::Target& target) {
  return gpu_text(program, target, "#", [&](size_t, const codegen::GpuStep& step) {
    return step.calls.empty() ? "  no calls\n" : to_string(*program.graph().pool, step);
  });
}

std::string cuda_text(const CompiledProgram& program, const codegen::Target& target) {
  std::map<std::string, size_t> printed;  // text -> step
  return gpu_text(program, target, "//", [&](size_t number, const codegen::GpuStep& step) {
    std::string text;
    for (const codegen::GpuCall& call : step.calls) {
      const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
      if (launch == nullptr) {
        text += "// a call of the product library\n";
        continue;
      }
      const auto [found, added] = printed.emplace(launch->source, number);
      text += heading_of(*launch);
      text += added ? cuda_text(*launch)
                    : fmt::format("// {}: the text of step {}\n", launch->name, found->second);
    }
    return text;
  });
}

struct Stage {
  const char* name;
  std::string (*print)(const CompiledProgram& program, const codegen::Target& target);
  bool planned;  // of the plan
};
constexpr Stage kStages[] = {
    {"import", import_text, false},      {"passes", passes_text, true},
    {"graph", graph_text, false},        {"cascade", cascade_text, true},
    {"streaming", streaming_text, true}, {"plan", plan_text, true},
    {"kernels", kernels_text, true},     {"cuda", cuda_text, true},
};

}  // namespace

std::string Program::text() const { return dump("plan"); }

std::string Program::dump(const std::string& stage, const std::string& target) const {
  const codegen::Target machine = codegen::target_named(target);
  std::vector<std::string_view> names;
  for (const Stage& known : kStages) {
    names.emplace_back(known.name);
    if (stage != known.name) continue;
    if (const std::string& reason = impl_->model->needs_values; known.planned && !reason.empty()) {
      return fmt::format("# no plan: {}\n", reason);
    }
    return known.print(*impl_, machine);
  }
  user_error("no stage is called \"{}\"; the stages are {}", stage, fmt::join(names, ", "));
}

}  // namespace redfuser
