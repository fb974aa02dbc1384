#include <algorithm>

#include "base/error.h"
#include "ir/evaluate.h"
#include "runtime/gpu/bound/memory_plan.h"

namespace redfuser::runtime {
namespace {

bool contains(const std::vector<ir::ValueId>& values, ir::ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

MemoryPlan::MemoryPlan(const GpuProgram& program, const LoadedSteps& loaded,
                       std::vector<int64_t> symbols, bool keep_all,
                       const std::set<ir::ValueId>& elsewhere)
    : program_(program), symbols_(program.with_most(std::move(symbols))), elsewhere_(elsewhere) {
  const ir::Graph& graph = program.graph();
  const std::vector<fuse::Step>& steps = program.compiled().plan.steps;
  const int end = static_cast<int>(steps.size());
  for (const ir::ValueId id : graph.inputs) {
    if (program.host().keeps(id)) continue;
    define(id);
    add_storage(id, -1);
  }
  std::map<ir::ValueId, int> freed;
  for (int i = 0; i < end; ++i) {
    const fuse::Step& step = steps[static_cast<size_t>(i)];
    const auto* alias = std::get_if<fuse::AliasStep>(&step.kind);
    for (const ir::ValueId id : step.writes) {
      if (program.host().keeps(id)) continue;
      define(id);
      if (alias == nullptr) add_storage(id, i);
    }
    if (alias != nullptr && !program.host().keeps(alias->value)) {
      make_room(alias->value, root(alias->value));
    }
    for (const ir::ValueId id : step.frees) freed.emplace(id, i);
    scratch_.emplace_back();
    for (const codegen::Scratch& need : loaded[static_cast<size_t>(i)]->form.scratch) {
      add_scratch(need.bytes, i);
    }
    // The host reads a size that was found behind the last step.
    if (const auto& size = loaded[static_cast<size_t>(i)]->form.found) {
      lives_[scratch_.back().at(static_cast<size_t>(size->scratch))].last = end;
    }
  }
  // What a step touches lives until the place where it is computed, which may be a later step's.
  for (int i = 0; i < end; ++i) {
    const auto place = static_cast<int>(program.joined().place_of(static_cast<size_t>(i)));
    const fuse::Step& step = steps[static_cast<size_t>(i)];
    if (place == i) continue;
    for (const auto* values : {&step.reads, &step.writes}) {
      for (const ir::ValueId id : *values) {
        const auto found = freed.find(id);
        if (found != freed.end()) found->second = std::max(found->second, place);
      }
    }
  }
  // Memory is live as long as one of its values.
  for (const auto& [id, dims] : dims_) {
    const auto storage = storages_.find(root(id));
    if (storage == storages_.end()) continue;
    const auto end_of_value = freed.find(id);
    int& last = lives_[storage->second].last;
    last = end_of_value == freed.end() || keep_all || contains(graph.outputs, id) ||
                   contains(graph.inputs, id)
               ? end
               : std::max(last, end_of_value->second);
  }
  arena_ = plan_arena(lives_);
}

void MemoryPlan::define(ir::ValueId value) {
  const auto index = static_cast<size_t>(value);
  for (const int64_t symbol : program_.compiled().shape_symbols[index]) {
    RF_CHECK(symbols_[static_cast<size_t>(symbol)] >= 0, "the size of \"{}\" is not known",
             program_.graph().values[index].name);
  }
  dims_[value] = program_.memory_dims(value, symbols_);
}

void MemoryPlan::add_scratch(ir::Expr bytes, int step) {
  scratch_.back().push_back(lives_.size());
  std::vector<int64_t> symbols;
  ir::visit(bytes, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Symbol) symbols.push_back(e->integer);
  });
  sized_.push_back({lives_.size(), std::move(symbols), -1, bytes});
  lives_.push_back({evaluate_size(bytes, symbols_), step, step});
  starts_.push_back(0);
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
  const auto number = static_cast<size_t>(value);
  const ir::Value& info = program_.graph().values[number];
  const auto& symbols = program_.compiled().shape_symbols[number];
  sized_.push_back({storage->second, {symbols.begin(), symbols.end()}, value, nullptr});
  if (const fuse::Append* append = program_.target().append_of(value)) {
    sized_.back().symbols.push_back(append->room->integer);
  }
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

bool MemoryPlan::holds(const std::vector<int64_t>& run) const {
  const std::vector<int64_t> symbols = program_.with_most(run);
  return std::all_of(sized_.begin(), sized_.end(), [&](const Sized& sized) {
    const bool same = std::all_of(sized.symbols.begin(), sized.symbols.end(), [&](int64_t symbol) {
      return symbols[static_cast<size_t>(symbol)] == symbols_[static_cast<size_t>(symbol)];
    });
    return same || fits(sized, symbols);
  });
}

// Empty tensors have room around them, which depends on the sizes.
bool MemoryPlan::fits(const Sized& sized, const std::vector<int64_t>& symbols) const {
  const int64_t room = lives_[sized.storage].bytes - starts_[sized.storage];
  if (sized.bytes != nullptr) return evaluate_size(sized.bytes, symbols) <= room;
  const DType dtype = program_.graph().values[static_cast<size_t>(sized.value)].dtype;
  const int64_t elements = element_count(program_.memory_dims(sized.value, symbols));
  return elements > 0 && elements <= room / static_cast<int64_t>(size_of(dtype));
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

int64_t MemoryPlan::room(ir::ValueId value) const {
  const size_t storage = storages_.at(root(value));
  return lives_[storage].bytes - starts_[storage];
}

int64_t MemoryPlan::scratch_room(size_t step, int scratch) const {
  return lives_[scratch_[step].at(static_cast<size_t>(scratch))].bytes;
}

}  // namespace redfuser::runtime
