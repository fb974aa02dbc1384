#include "runtime/cpu/growing_program.h"

#include <algorithm>

#include "base/error.h"
#include "cpu/steps/cascade/cascade_families.h"
#include "cpu/steps/map/map_append.h"
#include "cpu/steps/map/map_families.h"
#include "runtime/program/sizes/growing_symbols.h"

namespace redfuser::runtime {
namespace {

size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

class Maker {
 public:
  Maker(const CompiledProgram& program, cpu::GrowingSizes sizes, int threads)
      : program_(program),
        graph_(program.graph()),
        kernels_(program.cpu_kernels.of(program.plan)),
        threads_(threads) {
    result_->sizes = std::move(sizes);
  }

  std::shared_ptr<const GrowingProgram> make(const std::vector<GrowingState>& states) {
    for (const GrowingState& state : states) {
      if (appends_to(state)) sizes().rooms[state.present] = state.room;
    }
    for (size_t i = 0; i < program_.plan.steps.size(); ++i) {
      GrowingProgram::Step& step = result_->steps.emplace_back();
      if (!is_affected(program_.plan.steps[i])) continue;
      step.plan = plan_of(i, step.guards);
      step.packed = step.plan == nullptr && !is_alias_with_room(program_.plan.steps[i]);
      if (step.packed && appends(program_.plan.steps[i])) return nullptr;
    }
    return result_;
  }

 private:
  cpu::GrowingSizes& sizes() { return result_->sizes; }
  bool grows(ir::ValueId id) { return sizes().grows(graph_, id); }

  bool appends_to(const GrowingState& state) {
    const cpu::GrowingSizes::Append append{state.past, state.axis,
                                           graph_.values[index(state.past)].shape[state.axis]};
    for (const fuse::Step& step : program_.plan.steps) {
      const auto* map = std::get_if<fuse::MapStep>(&step.kind);
      if (map == nullptr || map->outputs.size() != 1) continue;
      const fuse::MapStep::Output& output = map->outputs.front();
      if (output.value != state.present) continue;
      if (!cpu::is_append(sizes(), *map, output.body, append)) return false;
      sizes().appends[state.present] = append;
      return true;
    }
    return false;
  }

  bool is_affected(const fuse::Step& step) {
    const auto grown = [&](ir::ValueId id) { return grows(id); };
    if (std::any_of(step.reads.begin(), step.reads.end(), grown)) return true;
    if (std::any_of(step.writes.begin(), step.writes.end(), grown)) return true;
    std::vector<int64_t> symbols;
    if (const auto* map = std::get_if<fuse::MapStep>(&step.kind)) {
      symbols = cpu::symbols_of(graph_, *map);
    } else if (const auto* cascade = std::get_if<fuse::CascadeStep>(&step.kind)) {
      symbols = cpu::symbols_of(graph_, *cascade);
    }
    return std::any_of(symbols.begin(), symbols.end(), [&](int64_t symbol) {
      return sizes().offsets[static_cast<size_t>(symbol)].has_value();
    });
  }

  bool appends(const fuse::Step& step) {
    return std::any_of(step.writes.begin(), step.writes.end(),
                       [&](ir::ValueId id) { return sizes().appends.count(id) > 0; });
  }

  // Null where there is none.
  std::shared_ptr<const cpu::StepPlan> plan_of(
      size_t number, std::vector<std::shared_ptr<const cpu::StepPlan>>& guards) {
    const auto* kernel = dynamic_cast<const cpu::GrowingKernel*>(kernels_[number].get());
    const auto plan = kernel == nullptr ? nullptr : kernel->growing_plan(sizes(), threads_);
    if (plan == nullptr) return nullptr;
    for (const cpu::PositionGuard& guard : program_.guards[number]) {
      const auto form = guard.growing_form(graph_, sizes(), threads_);
      const auto& reads = guard.reads();
      const bool reads_growing =
          std::any_of(reads.begin(), reads.end(), [&](ir::ValueId id) { return grows(id); });
      if (!form || (reads_growing && !plan->is_exact())) return nullptr;
      guards.push_back(*form);
    }
    return plan;
  }

  // Memory with room shows the same elements under both shapes if one size grows in each, by the
  // same extent, and as many elements lie below it.
  bool is_alias_with_room(const fuse::Step& of) {
    const auto* alias = std::get_if<fuse::AliasStep>(&of.kind);
    if (alias == nullptr) return false;
    const fuse::AliasStep& step = *alias;
    if (shows_first(step)) return true;
    const auto source = growing_axis(step.source), target = growing_axis(step.value);
    if (!source || !target) return false;
    const auto& from = graph_.values[index(step.source)].shape;
    const auto& to = graph_.values[index(step.value)].shape;
    const Dims memory = sizes().memory_of(graph_, step.source);
    Dims own = sizes().memory_of(graph_, step.value);
    const auto below = [](const Dims& dims, size_t axis) {
      return element_count({dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, dims.end()});
    };
    if (from[*source] != to[*target] || below(memory, *source) != below(own, *target)) return false;
    own[*target] = memory[*source];
    if (element_count(own) != element_count(memory)) return false;
    sizes().rooms[step.value] = own;
    return true;
  }

  // Whether both shapes show the first elements of as much memory.
  bool shows_first(const fuse::AliasStep& step) {
    const Dims from = sizes().memory_of(graph_, step.source);
    const Dims to = sizes().memory_of(graph_, step.value);
    return element_count(from) == element_count(to) && is_first(step.source) &&
           is_first(step.value);
  }
  bool is_first(ir::ValueId id) {
    const auto& shape = graph_.values[index(id)].shape;
    const auto outermost = std::find_if(shape.begin(), shape.end(),
                                        [](ir::Expr size) { return !size->is_constant(1); });
    return sizes().rooms.count(id) == 0 &&
           (outermost == shape.end() ||
            std::none_of(outermost + 1, shape.end(),
                         [&](ir::Expr size) { return sizes().grows(size); }));
  }

  // The only one; none also where there are several.
  std::optional<size_t> growing_axis(ir::ValueId id) {
    const auto& shape = graph_.values[index(id)].shape;
    std::optional<size_t> found;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!sizes().grows(shape[axis])) continue;
      if (found) return std::nullopt;
      found = axis;
    }
    return found;
  }

  const CompiledProgram& program_;
  const ir::Graph& graph_;
  const std::vector<std::unique_ptr<cpu::Kernel>>& kernels_;
  const int threads_;
  std::shared_ptr<GrowingProgram> result_ = std::make_shared<GrowingProgram>();
};

ir::ValueId named(const ir::Graph& graph, const std::vector<ir::ValueId>& ids,
                  const std::string& name) {
  const auto found = std::find_if(
      ids.begin(), ids.end(), [&](ir::ValueId id) { return graph.values[index(id)].name == name; });
  if (found == ids.end()) user_error("the model has no input or output \"{}\"", name);
  return *found;
}

}  // namespace

std::vector<GrowingState> growing_states(const ir::Graph& graph, const NamedDeviceTensors& inputs,
                                         const NamedDeviceTensors& outputs) {
  std::vector<GrowingState> states;
  for (const auto& [name, output] : outputs) {
    if (!output.room.empty() && output.data == nullptr) continue;
    const auto past = std::find_if(inputs.begin(), inputs.end(), [&, &to = output](auto& input) {
      return input.second.data == to.data && input.second.room == to.room;
    });
    if (output.room.empty() || past == inputs.end()) {
      user_error("enqueue needs a session on cuda: output \"{}\" is not in memory of a state",
                 name);
    }
    const Dims &before = past->second.dims, &after = output.dims;
    const auto axis = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
    if (axis.first == before.end() || axis.second == after.end()) {
      user_error("output \"{}\" has no more positions than input \"{}\"", name, past->first);
    }
    states.push_back({named(graph, graph.inputs, past->first), named(graph, graph.outputs, name),
                      static_cast<size_t>(axis.first - before.begin()), output.room});
  }
  return states;
}

cpu::GrowingSizes growing_sizes(const std::vector<GrowingState>& states,
                                const std::vector<int64_t>& symbols, const std::vector<bool>& grows,
                                size_t length, int64_t positions) {
  cpu::GrowingSizes sizes;
  sizes.length = length;
  int64_t most = greatest_length(positions);
  for (const GrowingState& state : states) most = std::min(most, state.room[state.axis]);
  sizes.most = symbols;
  sizes.offsets.resize(symbols.size());
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (!grows[i]) continue;
    sizes.offsets[i] = symbols[i] - symbols[length];
    sizes.most[i] += most - positions;
  }
  // The fewer lengths, the more is known of indices: sizes are at least 1 but where one is not.
  int64_t offset = 0;
  for (const auto& own : sizes.offsets) offset = std::min(offset, own.value_or(0));
  sizes.least = symbols[length] + offset >= 1 ? 1 - offset : 0;
  for (const GrowingState& state : states) {
    sizes.rooms[state.past] = state.room;
  }
  return sizes;
}

std::shared_ptr<const GrowingProgram> make_growing_program(const CompiledProgram& program,
                                                           const std::vector<GrowingState>& states,
                                                           cpu::GrowingSizes sizes, int threads) {
  return Maker(program, std::move(sizes), threads).make(states);
}

}  // namespace redfuser::runtime
