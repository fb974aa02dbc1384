#include "runtime/cpu/growing_body.h"

#include <algorithm>

#include "base/tensors/blocks.h"
#include "ir/evaluate.h"
#include "runtime/program/sizes/growing_symbols.h"

namespace redfuser::runtime {
namespace {

// Runs of the same sizes, after which those that follow are not expected to grow.
constexpr int kSteadyRuns = 4;

size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

}  // namespace

GrowingBody::GrowingBody(const CompiledProgram& program, int threads)
    : program_(program),
      graph_(program.graph()),
      continuations_(fuse::find_continuations(program.plan)),
      runs_(program, threads, true),
      has_texts_(std::any_of(graph_.values.begin(), graph_.values.end(),
                             [](const auto& value) { return value.dtype == DType::String; })) {}

void GrowingBody::restart() {
  runs_.forget();
  last_.clear();
  equal_ = 0;
}

bool GrowingBody::is_steady(const std::vector<int64_t>& symbols) {
  equal_ = symbols == last_ ? equal_ + 1 : 0;
  last_ = symbols;
  return equal_ >= kSteadyRuns;
}

bool GrowingBody::enter(PlanRun& plan) {
  rooms_.clear();
  program_of_run_ = nullptr;
  const std::vector<int64_t>& symbols = plan.symbols();
  const bool bound = std::find(symbols.begin(), symbols.end(), -1) == symbols.end();
  if (has_texts_ || !bound) return false;
  if (!is_steady(symbols)) {
    const std::vector<GrowingState> states = states_of(plan);
    program_of_run_ = runs_.find(states, symbols);
    if (program_of_run_ != nullptr) place_inputs(plan, states);
  }
  runs_.note(symbols);
  return program_of_run_ != nullptr;
}

// An input that an output continues; of several, those of the same number of positions.
std::vector<GrowingState> GrowingBody::states_of(PlanRun& plan) {
  std::vector<GrowingState> states;
  int64_t positions = 0;
  for (const auto& [past, present, axis] : continuations_) {
    const auto is_taken = [&, id = past](const auto& state) { return state.past == id; };
    if (std::any_of(states.begin(), states.end(), is_taken)) continue;
    if (graph_.values[index(past)].shape[axis]->op != ir::ExprOp::Symbol) continue;
    const Dims dims = cpu::dims_of(graph_, present, plan.symbols());
    if (!states.empty() && dims[axis] != positions) continue;
    positions = dims[axis];
    Dims room = dims;
    room[axis] = greatest_length(positions);
    states.push_back({past, present, axis, std::move(room)});
  }
  return states;
}

// A state's memory also is its output's target; but that of a value that others have continued
// stays theirs.
void GrowingBody::place_inputs(PlanRun& plan, const std::vector<GrowingState>& states) {
  const cpu::GrowingSizes& sizes = program_of_run_->sizes;
  std::vector<Tensor> targets;
  if (!sizes.appends.empty()) targets.resize(graph_.values.size());
  for (const GrowingState& state : states) {
    Tensor& value = plan.values()[index(state.past)];
    const Dims before = value.dims();
    std::shared_ptr<Room> room = room_of(value);
    const bool appends = sizes.appends.count(state.present) > 0;
    const bool is_last = room != nullptr && room->tensor.dims() == state.room &&
                         room->filled == before && rooms_.count(room->tensor.data()) == 0;
    if (appends && !is_last) {
      room = std::make_shared<Room>(Room{resized(value, state.room), before});
      value = value_of(room, before);
    }
    place(plan, state.past, state.room);
    if (!appends) continue;
    room->filled = cpu::dims_of(graph_, state.present, plan.symbols());
    targets[index(state.present)] = room->tensor;
  }
  for (const ir::ValueId id : graph_.inputs) {
    const bool is_state = std::any_of(states.begin(), states.end(),
                                      [&](const auto& state) { return state.past == id; });
    if (is_state || !sizes.grows(graph_, id)) continue;
    place(plan, id, sizes.memory_of(graph_, id));
  }
  if (!targets.empty()) plan.set_targets(std::move(targets));
  plan.set_growing(program_of_run_);
}

void GrowingBody::place(PlanRun& plan, ir::ValueId input, const Dims& memory) {
  Tensor& value = plan.values()[index(input)];
  std::shared_ptr<Room> room = room_of(value);
  if (room == nullptr || room->tensor.dims() != memory) {
    room = std::make_shared<Room>(Room{resized(value, memory), value.dims()});
  }
  value = room->tensor;
  rooms_.emplace(value.data(), std::move(room));
}

Tensor GrowingBody::leave(PlanRun& plan, ir::ValueId output) {
  Tensor& value = plan.values()[index(output)];
  if (!program_of_run_->sizes.grows(graph_, output)) return value;
  Dims dims = cpu::dims_of(graph_, output, plan.symbols());
  std::shared_ptr<Room>& room = rooms_[value.data()];
  if (room == nullptr) room = std::make_shared<Room>(Room{value, dims});
  if (room->tensor.dims() == value.dims()) return value_of(room, std::move(dims));
  // The memory under another shape, which stays that of the room.
  return resized(value, dims);
}

}  // namespace redfuser::runtime
