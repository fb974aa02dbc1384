// A session on a GPU: one stream, one arena, and what is known of the last few shapes.
#pragma once

#include <list>
#include <vector>

#include "runtime/cuda_shape.h"
#include "runtime/executor.h"

namespace redfuser {

// A shape's first run enqueues its calls; the second records them in a CUDA graph, which later runs
// replay. At most kMostShapes are remembered, the longest unused being forgotten first. Nothing is
// allocated on the GPU after the first run of the largest shape.
class CudaExecutor : public Executor {
 public:
  static constexpr size_t kMostShapes = 8;

  CudaExecutor(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options);
  ~CudaExecutor() override;

  NamedTensors run(const NamedTensors& inputs) override;
  DeviceTiming time_on_device(const NamedTensors& inputs, double budget_s) override;

 private:
  CudaShape& shape_for(bool keep_all);
  void reserve(int64_t arena_bytes);
  CudaShape& bind(const NamedTensors& inputs);
  void upload(const CudaShape& shape);
  void enqueue_all(const CudaShape& shape);
  void record(CudaShape& shape);
  void run_steps(const CudaShape& shape);
  Tensor fetch(const CudaShape& shape, ValueId value);
  NamedTensors outputs(const CudaShape& shape);

  std::shared_ptr<const CompiledProgram> compiled_;
  std::shared_ptr<const CudaProgram> program_;
  const Graph& graph_;
  int64_t memory_limit_;
  cuda::Stream stream_;
  cuda::Buffer workspace_, arena_;
  std::list<std::pair<std::vector<int64_t>, CudaShape>> shapes_;  // the latest first
  // Of the present run.
  std::vector<Tensor> values_;  // by ValueId: inputs
  std::vector<int64_t> symbols_;
};

}  // namespace redfuser
