#include "runtime/gpu/tuning_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "base/hash.h"
#include "ir/evaluate.h"

namespace redfuser::runtime {
namespace {

int64_t size_class(int64_t size) {
  constexpr int64_t kExact = 8;
  if (size < kExact) return size;
  const int64_t unit = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(size))) / 4;
  return (size + unit - 1) / unit * unit;
}

class Description {
 public:
  explicit Description(const std::vector<int64_t>& symbols) : symbols_(symbols) {}

  std::string of(const codegen::GpuStep& step,
                 const std::vector<codegen::KernelConfig>& choices) const {
    std::string text;
    for (const codegen::GpuCall& call : step.calls) {
      text += std::visit([&](const auto& c) { return of(c); }, call) + "\n";
    }
    for (const codegen::KernelConfig& choice : choices) text += to_string(choice) + "\n";
    return text;
  }

 private:
  std::string of(ir::Expr size) const {
    if (size == nullptr) return "-";
    if (size->is_constant()) return fmt::to_string(size->integer);
    return fmt::format("~{}", evaluate_size(size, symbols_));
  }

  std::string of(const std::vector<ir::Expr>& sizes) const {
    std::vector<std::string> texts;
    for (const ir::Expr size : sizes) texts.push_back(of(size));
    return fmt::format("({})", fmt::join(texts, " "));
  }

  std::string of(const codegen::KernelLaunch& launch) const {
    std::string text =
        fmt::format("{} {:016x}{:016x} sizes {} grid {}", launch.name, hash_text(launch.source, 1),
                    hash_text(launch.source, 2), of(launch.sizes),
                    of({launch.grid[0], launch.grid[1], launch.grid[2]}));
    for (const codegen::TmaView& view : launch.views) {
      text += fmt::format(" view {}", of(view.sizes()));
    }
    return text;
  }

  std::string of(const codegen::ProductCall& call) const {
    return fmt::format("product {} {} {} {} {} {} {} {}", name_of(call.dtype), name_of(call.result),
                       of({call.batch, call.m, call.n, call.k}),
                       of({call.a_offset, call.a_batch, call.a_row, call.a_column, call.b_offset,
                           call.b_batch, call.b_row, call.b_column, call.c_batch, call.c_row}),
                       call.bias.defined(), call.addend.defined(), call.a_scale.defined(),
                       call.line_scales);
  }

  const std::vector<int64_t>& symbols_;
};

}  // namespace

std::vector<TuningTask> tuning_tasks(const GpuProgram& program, const LoadedSteps& defaults,
                                     const std::vector<int64_t>& sizes) {
  std::vector<int64_t> symbols;
  for (const int64_t size : sizes) symbols.push_back(size_class(size));
  const ir::Graph own = clone(program.graph());  // the program's takes no new expressions
  const fuse::Plan& plan = program.compiled().plan;
  const std::vector<fuse::Step>& steps = plan.steps;
  std::vector<TuningTask> tasks;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (program.host().has(i)) continue;
    TuningTask task;
    task.step = i;
    for (const codegen::Candidate& candidate : program.joined().kernel_configs(
             own, plan, i, program.target(), symbols, defaults[i]->form.left_out)) {
      task.choices.push_back(candidate.choice);
      // Products are offered by rank.
      if (std::holds_alternative<fuse::ProductStep>(steps[i].kind)) continue;
      task.estimated_us[to_string(candidate.choice)] = candidate.time;
    }
    // A program without products has not opened the library.
    if (!program.has_products()) {
      std::erase_if(task.choices, [](const codegen::KernelConfig& choice) {
        return choice.family == codegen::kLibraryFamily ||
               choice.family == codegen::kDivisionFamily;
      });
    }
    if (task.choices.size() < 2) continue;
    task.text = Description(symbols).of(defaults[i]->form, task.choices);
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace redfuser::runtime
