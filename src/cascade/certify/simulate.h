// Runs cascades and streaming forms on scalars in double precision, for certificates and tests.
#pragma once

#include <memory>
#include <vector>

#include "cascade/streaming.h"
#include "ir/evaluate.h"

namespace redfuser::cascade {

// One row of data: values of reads, symbols and row axes.
struct Row {
  int64_t length = 0;                         // of the streamed axis
  std::vector<std::vector<int64_t>> columns;  // column points to evaluate, one list per stage
  ir::Environment values;                     // of all but leaves and the streamed axis
};

// The results of a cascade for a row, per stage and column point (TopK: its k values, then its k
// indices), and its outputs per column point or streamed element.
struct RowResult {
  std::vector<std::vector<double>> results;
  std::vector<std::vector<double>> outputs;
};

// Stage by stage over the whole row, as in the graph.
class UnfusedSimulator {
 public:
  explicit UnfusedSimulator(const Cascade& cascade);
  ~UnfusedSimulator();
  RowResult run(const Row& row);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class StreamingSimulator {
 public:
  explicit StreamingSimulator(const Streaming& streaming);
  ~StreamingSimulator();
  // Folds each segment [bounds[i], bounds[i+1]) in tiles of `tile` elements, and merges the
  // segments' states from left to right.
  RowResult run(const Row& row, const std::vector<int64_t>& bounds, int64_t tile);
  // The same without the elements of which `hidden` (Bool) is true.
  RowResult run_visible(const Row& row, const std::vector<int64_t>& bounds, int64_t tile,
                        ir::Expr hidden);
  // The number of elements that the last run left out, each once.
  int64_t left_out() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// For one row.
RowResult run_unfused(ir::ExprPool& pool, const Cascade& cascade, const Row& row);
RowResult run_streaming(ir::ExprPool& pool, const Streaming& streaming, const Row& row,
                        const std::vector<int64_t>& bounds, int64_t tile);

}  // namespace redfuser::cascade
