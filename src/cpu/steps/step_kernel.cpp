#include "cpu/steps/step_kernel.h"

#include <cstdlib>

#include "base/error.h"
#include "base/memory_budget.h"
#include "cpu/estimate/program_time.h"
#include "ir/evaluate.h"
#include "redfuser/memory_limit.h"

namespace redfuser::cpu {

char* thread_scratch(int64_t bytes) {
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<char, Free> memory;
  thread_local int64_t held = 0;
  if (bytes > held) {
    // It stays for later runs, and so counts for none.
    if (bytes > MemoryLimit::left()) {
      throw MemoryLimitError(
          fmt::format("{} bytes of working memory are needed, with {} left of the memory limit",
                      bytes, MemoryLimit::left()));
    }
    memory.reset();
    held = (bytes + 4095) / 4096 * 4096;
    memory.reset(static_cast<char*>(std::aligned_alloc(64, static_cast<size_t>(held))));
    if (!memory) {
      held = 0;
      throw std::bad_alloc();
    }
  }
  return memory.get();
}

Tensor& allocate(RunContext& context, ir::ValueId value) {
  return place(context, value, dims_of(context.graph, value, context.symbols));
}

TileRunner::TileRunner(const TileProgram& program, RunContext& context,
                       std::span<const ir::ValueId> outputs)
    : program_(program), context_(context), machines_(static_cast<size_t>(context.pool.size())) {
  for (int64_t value : program.tensors) {
    const Tensor& tensor = context.value(value);
    RF_CHECK(tensor.defined(), "a step reads value %{} before it is computed", value);
    tensors_.push_back(static_cast<const char*>(tensor.data()));
  }
  for (ir::ValueId value : outputs) {
    outputs_.push_back(static_cast<char*>(context.value(value).mutable_data()));
  }
}

void TileRunner::prepare(TileContext& machine, char* scratch, void* gemm_scratch) const {
  program_.prepare(machine, tensors_, outputs_, scratch, gemm_scratch);
}

void TileRunner::run(int64_t tasks, double saved,
                     const std::function<void(TileContext&, int64_t)>& body,
                     int64_t extra_scratch) {
  const int64_t own = (program_.scratch_bytes() + 63) / 64 * 64;
  const auto run_task = [&](int64_t task, int worker) {
    TileContext& machine = this->machine(worker);
    if (!machine.program) {
      char* scratch = thread_scratch(own + kGemmScratchBytes + extra_scratch);
      prepare(machine, scratch, scratch + own);
    }
    body(machine, task);
  };
  if (!runs_alone(saved)) return context_.pool.parallel_for(tasks, run_task, saved);
  for (int64_t task = 0; task < tasks; ++task) run_task(task, 0);
}

}  // namespace redfuser::cpu
