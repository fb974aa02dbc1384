#include "cpu/tile/tile_program.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/error.h"

namespace redfuser::cpu {

Elem elem_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
    case DType::Float16:
    case DType::BFloat16:
      return Elem::F32;
    case DType::Float64:
      return Elem::F64;
    case DType::Bool:
      return Elem::Bool;
    case DType::UInt64:
      return Elem::U64;
    case DType::Int32:
    case DType::Int16:
    case DType::UInt16:
    case DType::Int8:
    case DType::UInt8:
    case DType::Int4:
    case DType::UInt4:
    case DType::Int2:
    case DType::UInt2:
      return Elem::I32;
    case DType::Sequence:
    case DType::Optional:
    case DType::Undefined:
      internal_error("no register holds elements of dtype {}", name_of(dtype));
    default:
      return Elem::I64;
  }
}

size_t size_of(Elem elem) {
  switch (elem) {
    case Elem::F32:
    case Elem::I32:
      return 4;
    case Elem::Bool:
      return 1;
    default:
      return 8;
  }
}

int64_t element_bytes(const Register& r) {
  return static_cast<int64_t>(r.storage == DType::Undefined ? size_of(r.elem)
                                                            : redfuser::size_of(r.storage));
}

bool same_storage(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Int32 ||
         dtype == DType::Int64 || dtype == DType::UInt64 || dtype == DType::Bool;
}

namespace {

struct Life {
  int first = -1, last = -1;
};

// Positions of instructions in program order; a loop takes one before and one after its body.
class Liveness {
 public:
  explicit Liveness(const TileProgram& program)
      : program_(program), lives(program.registers.size()) {}

  void scan(const Block& block) {
    for (const auto& instruction : block) {
      const int begin = now_++;
      for (RegisterId r : instruction->reads) touch(r, begin);
      if (const Block* body = instruction->body()) {
        scan(*body);
        const int end = now_++;
        for (Life& life : lives) {  // values from before the loop are needed in every iteration
          if (life.first >= 0 && life.first < begin && life.last > begin) life.last = end;
        }
        for (RegisterId r : instruction->reads) touch(r, end);
      }
      for (RegisterId r : instruction->writes) touch(r, now_ - 1);
      order.push_back({instruction.get(), begin});
    }
  }

  RegisterId owner(RegisterId r) const {
    while (program_.registers[static_cast<size_t>(r)].alias != kNoRegister) {
      r = program_.registers[static_cast<size_t>(r)].alias;
    }
    return r;
  }

 private:
  void touch(RegisterId r, int at) {
    const Register& info = program_.registers[static_cast<size_t>(r)];
    if (info.offsets != kNoRegister) touch(info.offsets, at);
    Life& life = lives[static_cast<size_t>(owner(r))];
    if (life.first < 0) life.first = at;
    life.last = std::max(life.last, at);
  }

  const TileProgram& program_;
  int now_ = 0;

 public:
  std::vector<Life> lives;
  std::vector<std::pair<const Instruction*, int>> order;
};

// Blocks of scratch memory by size; freed blocks are taken again, best fit first.
class Arena {
 public:
  int64_t take(int64_t bytes) {
    auto found = free_.lower_bound(bytes);
    if (found != free_.end() && found->first <= 2 * bytes) {
      const int64_t position = found->second;
      held_[position] = found->first;
      free_.erase(found);
      return position;
    }
    const int64_t position = end_;
    end_ += bytes;
    held_[position] = bytes;
    return position;
  }
  void give(int64_t position) { free_.emplace(held_.at(position), position); }
  int64_t size() const { return end_; }

 private:
  std::multimap<int64_t, int64_t> free_;
  std::map<int64_t, int64_t> held_;
  int64_t end_ = 0;
};

}  // namespace

int64_t TileProgram::bytes_of(const Register& r) const {
  int64_t rows = has_rows(r.shape) && has_columns(r.shape) ? row_tile : 1;
  if (r.matrix_rows > 0) rows = r.matrix_rows;
  const int64_t bytes = rows * r.stride * static_cast<int64_t>(size_of(r.elem));
  return (bytes + 63) / 64 * 64;
}

int TileProgram::tile_registers(int scope) const {
  Liveness liveness(*this);
  liveness.scan(block);
  std::vector<std::pair<int, int>> events;
  for (size_t i = 0; i < registers.size(); ++i) {
    const Register& r = registers[i];
    const Life& life = liveness.lives[i];
    if (life.first < 0 || r.alias != kNoRegister || r.shape != Shape::Tile) continue;
    if (r.scope != scope || r.matrix_rows > 0) continue;
    events.push_back({life.first, 1});
    events.push_back({life.last, -1});
  }
  std::sort(events.begin(), events.end());
  int alive = 0, most = 0;
  for (auto& [at, change] : events) most = std::max(most, alive += change);
  return most;
}

void TileProgram::layout() {
  for (Register& r : registers) {
    if (!r.dense) continue;
    r.stride = has_columns(r.shape) ? padded(scopes[static_cast<size_t>(r.scope)].tile)
               : has_rows(r.shape)  ? padded(row_tile)
                                    : 16;
  }
  Liveness liveness(*this);
  liveness.scan(block);
  // Registers by first and last use.
  std::map<int, std::vector<RegisterId>> begins, ends;
  for (size_t i = 0; i < registers.size(); ++i) {
    const Life& life = liveness.lives[i];
    if (life.first < 0 || !registers[i].dense || registers[i].alias != kNoRegister) continue;
    begins[life.first].push_back(static_cast<RegisterId>(i));
    ends[life.last].push_back(static_cast<RegisterId>(i));
  }
  std::map<int, const Instruction*> at;
  for (auto& [instruction, position] : liveness.order) at[position] = instruction;
  Arena arena;
  std::vector<bool> handed_over(registers.size());
  // An elementwise result takes the memory of an operand of its own kind that ends here.
  auto inherit = [&](RegisterId id, int now) -> bool {
    auto found = at.find(now);
    if (found == at.end() || !found->second->elementwise) return false;
    Register& r = registers[static_cast<size_t>(id)];
    if (found->second->writes != std::vector<RegisterId>{id}) return false;
    for (RegisterId operand : found->second->reads) {
      const Register& o = registers[static_cast<size_t>(operand)];
      const auto index = static_cast<size_t>(operand);
      if (!o.dense || o.alias != kNoRegister || handed_over[index]) continue;
      if (liveness.lives[index].last != now || liveness.lives[index].first >= now) continue;
      if (o.elem != r.elem || o.shape != r.shape || o.scope != r.scope ||
          o.matrix_rows != r.matrix_rows) {
        continue;
      }
      r.position = o.position;
      handed_over[index] = true;
      return true;
    }
    return false;
  };
  std::vector<int> moments;
  for (auto& [now, ids] : begins) moments.push_back(now);
  for (auto& [now, ids] : ends) moments.push_back(now);
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  for (int now : moments) {
    for (RegisterId id : begins[now]) {
      Register& r = registers[static_cast<size_t>(id)];
      if (!inherit(id, now)) r.position = arena.take(bytes_of(r));
    }
    for (RegisterId id : ends[now]) {
      if (!handed_over[static_cast<size_t>(id)]) {
        arena.give(registers[static_cast<size_t>(id)].position);
      }
    }
  }
  for (size_t i = 0; i < registers.size(); ++i) {
    if (registers[i].alias == kNoRegister) continue;
    registers[i].position =
        registers[static_cast<size_t>(liveness.owner(static_cast<RegisterId>(i)))].position;
  }
  scratch_bytes_ = std::max<int64_t>(arena.size(), 64);
}

void TileProgram::prepare(TileContext& machine, std::span<const char* const> tensor_data,
                          std::span<char* const> output_data, char* scratch,
                          void* gemm_scratch) const {
  machine.program = this;
  machine.slots.assign(registers.size(), Slot{});
  for (size_t i = 0; i < registers.size(); ++i) {
    if (!registers[i].dense) continue;
    machine.slots[i] = {scratch + registers[i].position, registers[i].stride, nullptr};
  }
  machine.axes.assign(static_cast<size_t>(axis_slots), 0);
  machine.columns.resize(scopes.size());
  for (size_t i = 0; i < scopes.size(); ++i) machine.columns[i] = {0, scopes[i].extent};
  machine.parts = machine.columns;
  machine.tensors = tensor_data;
  machine.outputs = output_data;
  machine.scratch = scratch;
  machine.gemm_scratch = gemm_scratch;
}

void TileProgram::run(TileContext& machine, int64_t row_begin, int64_t row_count) const {
  machine.rows = {row_begin, row_count};
  for (const auto& instruction : block) instruction->run(machine);
}

}  // namespace redfuser::cpu
