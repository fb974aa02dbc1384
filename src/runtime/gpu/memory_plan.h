// The memory plan of a GPU program for one set of sizes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/gpu/arena.h"
#include "runtime/gpu/program.h"

namespace redfuser::runtime {

// Evaluates sizes and assigns offsets; allocates nothing.
class MemoryPlan {
 public:
  // Inputs and outputs stay until the end of a run, with `keep_all` every value; values in
  // `elsewhere` get no memory. Throws UserError for a size that no input binds.
  MemoryPlan(const GpuProgram& program, const LoadedSteps& steps,
             const std::vector<int64_t>& symbols, bool keep_all,
             const std::set<ir::ValueId>& elsewhere = {});

  int64_t bytes() const { return arena_.bytes; }
  const Dims& dims(ir::ValueId value) const { return dims_.at(value); }
  // The value's offset in the arena; nullopt for constants.
  std::optional<int64_t> offset(ir::ValueId value) const;
  int64_t scratch_offset(size_t step, int scratch) const;

 private:
  ir::ValueId root(ir::ValueId value) const;
  void define(ir::ValueId value, const std::vector<int64_t>& symbols);
  void add_storage(ir::ValueId value, int step);
  void make_room(ir::ValueId value, ir::ValueId owner);

  const GpuProgram& program_;
  const std::set<ir::ValueId> elsewhere_;
  std::map<ir::ValueId, Dims> dims_;
  std::map<ir::ValueId, size_t> storages_;
  std::vector<BufferLife> lives_;
  std::vector<int64_t> starts_;               // within the buffers
  std::vector<std::vector<size_t>> scratch_;  // by step
  Arena arena_;
};

}  // namespace redfuser::runtime
