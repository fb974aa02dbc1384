// Shared parts of the plans of lowered steps: contexts that run tile programs on the thread pool.
#pragma once

#include <functional>
#include <vector>

#include "cpu/step.h"
#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Scratch memory of the calling thread, aligned to 64 bytes; valid until the thread's next call.
char* thread_scratch(int64_t bytes);

// Allocates a step's output.
Tensor& allocate(RunContext& context, ir::ValueId value);

// Runs tasks of a tile program, each on a worker's own machine.
class TileRunner {
 public:
  // `outputs` are the tensors of the program's outputs, already allocated.
  TileRunner(const TileProgram& program, RunContext& context, std::span<const ir::ValueId> outputs);
  // body(machine, task); more scratch is at machine.gemm_scratch + kGemmScratchBytes.
  // `saved`: microseconds that several threads save.
  void run(int64_t tasks, double saved, const std::function<void(TileContext&, int64_t)>& body,
           int64_t extra_scratch = 0);
  // The machine of a worker, for callers that run tasks themselves; before its first program they
  // prepare it with scratch memory of the program, aligned to 64 bytes.
  TileContext& machine(int worker) { return machines_[static_cast<size_t>(worker)]; }
  void prepare(TileContext& machine, char* scratch, void* gemm_scratch) const;

 private:
  const TileProgram& program_;
  RunContext& context_;
  std::vector<const char*> tensors_;
  std::vector<char*> outputs_;
  std::vector<TileContext> machines_;
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace redfuser::cpu
