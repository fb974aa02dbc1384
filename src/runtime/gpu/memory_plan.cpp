#include <algorithm>

#include "base/error.h"
#include "ir/evaluate.h"
#include "runtime/gpu/memory_plan.h"

namespace redfuser::runtime {
namespace {

bool holds(const std::vector<ir::ValueId>& values, ir::ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

MemoryPlan::MemoryPlan(const GpuProgram& program, const LoadedSteps& loaded,
                       const std::vector<int64_t>& symbols, bool keep_all,
                       const std::set<ir::ValueId>& elsewhere)
    : program_(program), elsewhere_(elsewhere) {
  const ir::Graph& graph = program.graph();
  const std::vector<fuse::Step>& steps = program.compiled().plan.steps;
  const int end = static_cast<int>(steps.size());
  for (const ir::ValueId id : graph.inputs) {
    if (program.host().keeps(id)) continue;
    define(id, symbols);
    add_storage(id, -1);
  }
  std::map<ir::ValueId, int> freed;
  for (int i = 0; i < end; ++i) {
    const fuse::Step& step = steps[static_cast<size_t>(i)];
    const auto* alias = std::get_if<fuse::AliasStep>(&step.kind);
    for (const ir::ValueId id : step.writes) {
      if (program.host().keeps(id)) continue;
      define(id, symbols);
      if (alias == nullptr) add_storage(id, i);
    }
    if (alias != nullptr && !program.host().keeps(alias->value)) {
      make_room(alias->value, root(alias->value));
    }
    for (const ir::ValueId id : step.frees) freed.emplace(id, i);
    std::vector<size_t>& scratch = scratch_.emplace_back();
    for (const codegen::Scratch& need : loaded[static_cast<size_t>(i)]->form.scratch) {
      scratch.push_back(lives_.size());
      lives_.push_back({evaluate_size(need.bytes, symbols), i, i});
      starts_.push_back(0);
    }
  }
  // Memory is live as long as one of its values.
  for (const auto& [id, dims] : dims_) {
    const auto storage = storages_.find(root(id));
    if (storage == storages_.end()) continue;
    const auto end_of_value = freed.find(id);
    int& last = lives_[storage->second].last;
    last = end_of_value == freed.end() || keep_all || holds(graph.outputs, id) ||
                   holds(graph.inputs, id)
               ? end
               : std::max(last, end_of_value->second);
  }
  arena_ = plan_arena(lives_);
}

void MemoryPlan::define(ir::ValueId value, const std::vector<int64_t>& symbols) {
  const auto index = static_cast<size_t>(value);
  for (const int64_t symbol : program_.compiled().shape_symbols[index]) {
    RF_CHECK(symbols[static_cast<size_t>(symbol)] >= 0, "the size of \"{}\" is not known",
             program_.graph().values[index].name);
  }
  dims_[value] = cpu::dims_of(program_.graph(), value, symbols);
}

namespace {

// Elements that a kernel may read before and after an empty tensor's address, in branches that are
// not taken: an index clamped to an empty dimension is -1.
int64_t reach_of(const Dims& dims) {
  int64_t reach = 1;
  for (const int64_t dim : dims) {
    if (__builtin_mul_overflow(reach, std::max<int64_t>(dim, 1), &reach)) return -1;
  }
  return reach;
}

}  // namespace

void MemoryPlan::add_storage(ir::ValueId value, int step) {
  if (elsewhere_.count(value)) return;
  storages_[value] = lives_.size();
  lives_.push_back({0, step, step});
  starts_.push_back(0);
  make_room(value, value);
}

// For a value with the memory of `owner`.
void MemoryPlan::make_room(ir::ValueId value, ir::ValueId owner) {
  const auto storage = storages_.find(owner);
  if (storage == storages_.end()) return;
  const ir::Value& info = program_.graph().values[static_cast<size_t>(value)];
  const auto width = static_cast<int64_t>(size_of(info.dtype));
  const int64_t elements = element_count(dims_[value]);
  const int64_t wanted = elements > 0 ? elements : reach_of(dims_[value]);
  int64_t bytes = 0, padded = 0;
  if (wanted < 0 || __builtin_mul_overflow(wanted, width, &bytes) ||
      __builtin_add_overflow(bytes, kArenaAlignment - 1, &padded)) {
    user_error("\"{}\" is too large", info.name);
  }
  BufferLife& life = lives_[storage->second];
  if (elements > 0) {
    life.bytes = std::max(life.bytes, bytes);
    return;
  }
  int64_t& start = starts_[storage->second];
  start = std::max(start, padded / kArenaAlignment * kArenaAlignment);
  if (__builtin_mul_overflow(start, 2, &life.bytes)) user_error("\"{}\" is too large", info.name);
}

ir::ValueId MemoryPlan::root(ir::ValueId value) const {
  return program_.compiled().plan.root(value);
}

std::optional<int64_t> MemoryPlan::offset(ir::ValueId value) const {
  const auto storage = storages_.find(root(value));
  if (storage == storages_.end()) return std::nullopt;
  return arena_.offsets[storage->second] + starts_[storage->second];
}

int64_t MemoryPlan::scratch_offset(size_t step, int scratch) const {
  return arena_.offsets[scratch_[step].at(static_cast<size_t>(scratch))];
}

}  // namespace redfuser::runtime
