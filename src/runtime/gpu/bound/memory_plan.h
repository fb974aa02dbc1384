// The memory plan of a GPU program for the greatest of some sets of sizes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/gpu/bound/arena.h"
#include "runtime/gpu/bound/program.h"

namespace redfuser::runtime {

// Evaluates sizes and assigns offsets; allocates nothing.
class MemoryPlan {
 public:
  // Inputs and outputs stay until the end of a run, with `keep_all` every value; values in
  // `elsewhere` get no memory. Throws UserError for a size that no input binds.
  MemoryPlan(const GpuProgram& program, const LoadedSteps& steps, std::vector<int64_t> symbols,
             bool keep_all, const std::set<ir::ValueId>& elsewhere = {});

  int64_t bytes() const { return arena_.bytes; }
  // Whether a run with these symbols has room in the memory.
  bool holds(const std::vector<int64_t>& run) const;
  // The value's offset in the arena; nullopt for constants and values elsewhere.
  std::optional<int64_t> offset(ir::ValueId value) const;
  int64_t scratch_offset(size_t step, int scratch) const;
  // Bytes from the offset that are the value's, or the scratch buffer's, alone.
  int64_t room(ir::ValueId value) const;
  int64_t scratch_room(size_t step, int scratch) const;

 private:
  // Memory whose size depends on symbols: a value's, or a scratch buffer of so many bytes.
  struct Sized {
    size_t storage = 0;
    std::vector<int64_t> symbols;
    ir::ValueId value = -1;
    ir::Expr bytes = nullptr;
  };

  ir::ValueId root(ir::ValueId value) const;
  void define(ir::ValueId value);
  void add_storage(ir::ValueId value, int step);
  void add_scratch(ir::Expr bytes, int step);
  void make_room(ir::ValueId value, ir::ValueId owner);
  bool fits(const Sized& sized, const std::vector<int64_t>& symbols) const;

  const GpuProgram& program_;
  const std::vector<int64_t> symbols_;
  const std::set<ir::ValueId> elsewhere_;
  std::map<ir::ValueId, Dims> dims_;
  std::map<ir::ValueId, size_t> storages_;
  std::vector<Sized> sized_;
  std::vector<BufferLife> lives_;
  std::vector<int64_t> starts_;               // within the buffers
  std::vector<std::vector<size_t>> scratch_;  // by step
  Arena arena_;
};

}  // namespace redfuser::runtime
