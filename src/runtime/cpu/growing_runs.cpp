#include "runtime/cpu/growing_runs.h"

#include <algorithm>

#include "ir/evaluate.h"

namespace redfuser::runtime {
namespace {

constexpr size_t kKept = 16;

ir::Expr size_of(const CompiledProgram& program, ir::ValueId id, size_t axis) {
  return program.graph().values[static_cast<size_t>(id)].shape[axis];
}

// Whether the output's sizes are those of the input but for one, along which it is longer.
bool may_follow(const ir::Graph& graph, const cpu::GrowingSizes& sizes, ir::ValueId input,
                ir::ValueId output) {
  const ir::Value& before = graph.values[static_cast<size_t>(input)];
  const ir::Value& after = graph.values[static_cast<size_t>(output)];
  if (before.dtype != after.dtype || before.shape.size() != after.shape.size()) return false;
  const Dims own = sizes.memory_of(graph, input), next = sizes.memory_of(graph, output);
  size_t longer = 0;
  for (size_t axis = 0; axis < own.size(); ++axis) {
    if (before.shape[axis] == after.shape[axis]) continue;
    if (!sizes.grows(before.shape[axis]) || own[axis] >= next[axis]) return false;
    ++longer;
  }
  return longer == 1;
}

// Gives an input the room of the output that follows it: the output is usually the next run's
// input, which then keeps its memory.
void add_rooms_of_successors(const ir::Graph& graph, cpu::GrowingSizes& sizes) {
  for (const ir::ValueId input : graph.inputs) {
    if (sizes.rooms.count(input) > 0 || !sizes.grows(graph, input)) continue;
    const auto output =
        std::find_if(graph.outputs.begin(), graph.outputs.end(),
                     [&](ir::ValueId id) { return may_follow(graph, sizes, input, id); });
    if (output != graph.outputs.end()) sizes.rooms[input] = sizes.memory_of(graph, *output);
  }
}

}  // namespace

void GrowingRuns::forget() {
  last_.clear();
  grows_.clear();
}

int64_t GrowingRuns::added(const std::vector<GrowingState>& states,
                           const std::vector<int64_t>& symbols) const {
  if (!states.empty()) {
    const ir::Expr total = size_of(program_, states.front().present, states.front().axis);
    return evaluate_size(total, symbols) - evaluate_size(total, last_);
  }
  for (size_t i = 0; i < symbols.size(); ++i) {
    if ((grows_.empty() || grows_[i]) && symbols[i] > last_[i]) return symbols[i] - last_[i];
  }
  return 0;
}

// A size grows if it has changed from each run to the next by as much as the positions. Runs in
// which that does not hold have a key of their own.
bool GrowingRuns::learn(const std::vector<GrowingState>& states,
                        const std::vector<int64_t>& symbols) {
  const auto bound = [](const std::vector<int64_t>& of) {
    return !of.empty() && std::find(of.begin(), of.end(), -1) == of.end();
  };
  if (!bound(symbols)) return false;
  for (const GrowingState& state : states) {
    if (size_of(program_, state.past, state.axis)->op != ir::ExprOp::Symbol) return false;
  }
  const int64_t more = bound(last_) ? added(states, symbols) : 0;
  if (more == 0) return !grows_.empty();
  if (grows_.empty()) grows_.assign(symbols.size(), true);
  for (size_t i = 0; i < symbols.size(); ++i) {
    grows_[i] = grows_[i] && symbols[i] - last_[i] == more;
  }
  for (const GrowingState& state : states) {
    grows_[static_cast<size_t>(size_of(program_, state.past, state.axis)->integer)] = true;
  }
  const bool any = std::find(grows_.begin(), grows_.end(), true) != grows_.end();
  if (!any) grows_.clear();
  return any;
}

std::shared_ptr<const GrowingProgram> GrowingRuns::find(const std::vector<GrowingState>& states,
                                                        const std::vector<int64_t>& symbols) {
  if (!program_.bodies.empty() || !learn(states, symbols)) return nullptr;
  auto length = static_cast<size_t>(std::find(grows_.begin(), grows_.end(), true) - grows_.begin());
  int64_t positions = symbols[length];
  if (!states.empty()) {
    const GrowingState& first = states.front();
    length = static_cast<size_t>(size_of(program_, first.past, first.axis)->integer);
    positions = evaluate_size(size_of(program_, first.present, first.axis), symbols);
  }
  cpu::GrowingSizes sizes = growing_sizes(states, symbols, grows_, length, positions);
  Key key = sizes.most;
  key.push_back(sizes.least);
  for (const auto& offset : sizes.offsets)
    key.insert(key.end(), {offset ? 1 : 0, offset.value_or(0)});
  for (const GrowingState& state : states) {
    key.insert(key.end(), {state.past, state.present});
    key.insert(key.end(), state.room.begin(), state.room.end());
  }
  const auto known = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const auto& entry) { return entry.first == key; });
  if (known != programs_.end()) {
    std::rotate(programs_.begin(), known, known + 1);
  } else {
    ++made_;
    if (chained_) add_rooms_of_successors(program_.graph(), sizes);
    programs_.emplace_front(std::move(key),
                            make_growing_program(program_, states, std::move(sizes), threads_));
    if (programs_.size() > kKept) programs_.pop_back();
  }
  return programs_.front().second;
}

}  // namespace redfuser::runtime
