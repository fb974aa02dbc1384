// The calls of a bound program in a CUDA graph, which other sizes and addresses change.
#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "cuda/driver.h"
#include "ir/graph.h"

namespace redfuser::runtime {

class BoundProgram;

// Nothing if other threads' work on the GPU ended the recording. Errors of the calls themselves
// show when they are enqueued.
cuda::Graph recorded(const cuda::Stream& stream, const std::function<void()>& enqueue);

class Recording {
 public:
  explicit operator bool() const { return static_cast<bool>(graph_); }
  const cuda::Graph& graph() const { return graph_; }
  // The calls of these steps have changed.
  void outdate(const std::vector<size_t>& steps) { outdated_.insert(steps.begin(), steps.end()); }

  // Makes the graph have the program's calls. False where that is not possible, or is not worth
  // another attempt.
  bool prepare(const BoundProgram& program, const cuda::Stream& stream,
               cuda::DevicePointer workspace);
  // Gives the outdated kernels of the graph their arguments. False where a step has other calls
  // than recorded, or must wait for others.
  bool change(const BoundProgram& program);
  // Records the calls: each step waits for those before it that touch the same memory, and no
  // others. False if other threads' work on the GPU ended the recording.
  bool record(const BoundProgram& program, const cuda::Stream& stream,
              cuda::DevicePointer workspace);

 private:
  struct Kernel {
    cuda::GraphNodeHandle node;
    bool plain;  // without attributes of the launch, which a change may not keep
  };
  using Kernels = std::vector<Kernel>;
  using Overlaps = std::vector<std::pair<ir::ValueId, ir::ValueId>>;

  bool change(const BoundProgram& program, size_t step) const;
  void keep_nodes(std::vector<Kernels>& kernels) const;
  void enqueue(const BoundProgram& program, const cuda::Stream& stream,
               cuda::DevicePointer workspace, std::vector<Kernels>& kernels);

  cuda::Graph graph_;
  std::vector<Kernels> kernels_;  // by step; calls of the product library are left out
  Overlaps overlaps_;
  std::set<size_t> outdated_;
  int remade_ = 0;  // recordings in succession that made the graph anew
};

}  // namespace redfuser::runtime
