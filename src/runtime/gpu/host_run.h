// The steps of a GPU program that the CPU computes, in the runs of one session.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "runtime/cpu/call_run.h"
#include "runtime/gpu/bound/bound_program.h"
#include "runtime/program/sizes/size_checks.h"

namespace redfuser::runtime {

// For one thread at a time. Values of the GPU that a step reads are copied to the host, and its
// results back, unless they are in host memory alone (HostPart).
class HostRun {
 public:
  // `threads` as in SessionOptions.
  HostRun(const GpuProgram& program, int threads);

  // Before the first step of a run. `inputs` are by ValueId; those in host memory are read.
  void begin(const std::vector<int64_t>& symbols, std::span<const Tensor> inputs);
  // Waits for the stream, computes the step, and waits for the copies of its results. Throws
  // UserError as the CPU's kernel does, and for a position that is out of range.
  void run(const BoundProgram& shape, size_t step, const cuda::Stream& stream);
  // A value in host memory that has been computed.
  const Tensor& value(ir::ValueId id) const { return values_[static_cast<size_t>(id)]; }
  // The sizes by symbol, with those that the run has bound so far.
  const std::vector<int64_t>& symbols() const { return symbols_; }
  // Replaces it, for later steps.
  void replace(ir::ValueId id, const Tensor& value) { values_[static_cast<size_t>(id)] = value; }

 private:
  void fetch(const BoundProgram& shape, ir::ValueId id, const cuda::Stream& stream);
  void compute(size_t step);

  const GpuProgram& program_;
  const std::vector<std::unique_ptr<cpu::Kernel>>& kernels_;
  ThreadPool pool_;
  std::map<size_t, CallRun> calls_;  // by step: control flow
  std::vector<Tensor> values_;       // by ValueId
  std::vector<int64_t> symbols_;
  const SizeChecks all_checks_;
  SizeChecks checks_;  // not made yet in this run
};

}  // namespace redfuser::runtime
