#include "runtime/cpu/growing_runs.h"

#include <algorithm>

#include "ir/evaluate.h"

namespace redfuser::runtime {
namespace {

constexpr size_t kKept = 16;

ir::Expr size_of_past(const CompiledProgram& program, const GrowingState& state) {
  return program.graph().values[static_cast<size_t>(state.past)].shape[state.axis];
}

}  // namespace

// A size grows if it has changed from the last run to this one by as much as the positions. What
// does not hold in later runs gives them a key of their own.
bool GrowingRuns::learn(const std::vector<GrowingState>& states,
                        const std::vector<int64_t>& symbols) {
  const auto bound = [](const std::vector<int64_t>& of) {
    return !of.empty() && std::find(of.begin(), of.end(), -1) == of.end();
  };
  if (!bound(symbols)) return false;
  for (const GrowingState& state : states) {
    if (size_of_past(program_, state)->op != ir::ExprOp::Symbol) return false;
  }
  if (!bound(last_)) return !grows_.empty();
  const GrowingState& first = states.front();
  const ir::Expr total =
      program_.graph().values[static_cast<size_t>(first.present)].shape[first.axis];
  const int64_t added = evaluate_size(total, symbols) - evaluate_size(total, last_);
  if (added == 0) return !grows_.empty();
  grows_.assign(symbols.size(), false);
  for (size_t i = 0; i < symbols.size(); ++i) grows_[i] = symbols[i] - last_[i] == added;
  for (const GrowingState& state : states) {
    grows_[static_cast<size_t>(size_of_past(program_, state)->integer)] = true;
  }
  return true;
}

std::shared_ptr<const GrowingProgram> GrowingRuns::find(const std::vector<GrowingState>& states,
                                                        const std::vector<int64_t>& symbols) {
  if (!program_.bodies.empty() || !learn(states, symbols)) return nullptr;
  cpu::GrowingSizes sizes = growing_sizes(program_, states, symbols, grows_);
  Key key = sizes.most;
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
    programs_.emplace_front(std::move(key),
                            make_growing_program(program_, states, std::move(sizes), threads_));
    if (programs_.size() > kKept) programs_.pop_back();
  }
  return programs_.front().second;
}

}  // namespace redfuser::runtime
