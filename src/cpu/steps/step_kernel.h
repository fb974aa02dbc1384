// Shared parts of the kernels of lowered steps: plans made once per set of sizes, and contexts that
// run tile programs on the thread pool.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "cpu/step.h"
#include "cpu/tile/tile_program.h"

namespace redfuser::cpu {

// Scratch memory of the calling thread, aligned to 64 bytes; valid until the thread's next call.
char* thread_scratch(int64_t bytes);

// The plans of a step for the last few sets of sizes. Thread-safe.
template <typename Plan>
class PlanCache {
 public:
  PlanCache(const ir::Graph& graph, std::vector<int64_t> symbols)
      : graph_(graph), symbols_(std::move(symbols)) {}

  std::shared_ptr<const Plan> get(
      const RunContext& context,
      const std::function<std::shared_ptr<const Plan>(std::span<const int64_t>)>& make) const {
    if (auto known = find(context.symbols)) return known;
    auto plan = make(context.symbols);
    std::lock_guard lock(mutex_);
    plans_.push_front({key_of(context.symbols), plan});
    if (plans_.size() > kKept) plans_.pop_back();
    return plan;
  }
  // nullptr where none is kept.
  std::shared_ptr<const Plan> find(std::span<const int64_t> symbols) const {
    const std::vector<int64_t> key = key_of(symbols);
    std::lock_guard lock(mutex_);
    for (auto& [known, plan] : plans_) {
      if (known == key) return plan;
    }
    return nullptr;
  }
  const ir::Graph& graph() const { return graph_; }

 private:
  std::vector<int64_t> key_of(std::span<const int64_t> symbols) const {
    std::vector<int64_t> key;
    for (int64_t symbol : symbols_) key.push_back(symbols[static_cast<size_t>(symbol)]);
    return key;
  }

  static constexpr size_t kKept = 8;
  const ir::Graph& graph_;
  std::vector<int64_t> symbols_;
  mutable std::mutex mutex_;
  mutable std::deque<std::pair<std::vector<int64_t>, std::shared_ptr<const Plan>>> plans_;
};

inline constexpr const char* kTileProgramFamily = "tile_program";

// Allocates a step's output.
Tensor& allocate(RunContext& context, ir::ValueId value);

// Runs tasks of a tile program, each on a worker's own machine.
class TileRunner {
 public:
  // `outputs` are the tensors of the program's outputs, already allocated.
  TileRunner(const TileProgram& program, RunContext& context, std::span<const ir::ValueId> outputs);
  // body(machine, task); more scratch is at machine.gemm_scratch + kGemmScratchBytes.
  void run(int64_t tasks, const std::function<void(TileContext&, int64_t)>& body,
           int64_t extra_scratch = 0);

 private:
  const TileProgram& program_;
  RunContext& context_;
  std::vector<const char*> tensors_;
  std::vector<char*> outputs_;
  std::vector<TileContext> machines_;
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace redfuser::cpu
