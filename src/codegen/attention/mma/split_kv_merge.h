// Partial states of attention rows in memory, and their merge: of the warps of a block, and of the
// segments of a row tile.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/attention/mma/mma_fold.h"

namespace redfuser::codegen {

// Floats of a row's head: scalars, rescale references and count.
int state_head(const AttentionSpec& form);
// Floats of a block of states: the heads of all rows, then their columns.
int state_block(const AttentionSpec& form, int rows);

class SplitKvMerge {
 public:
  // A block of states has `rows`, a power of two up to 16, and is merged by `threads`.
  SplitKvMerge(MmaFold& tile, const AttentionSpec& form, int rows, int threads);

  // Stores the registers of the warp's tile into `states`, its block of states.
  void store_registers(const std::string& states);
  // Declares `merge(heads, head_stride, states, count)` and the merged state that it sets, of which
  // every thread has some columns of one row, `line`. It reads `count` consecutive blocks of
  // states, with their heads at `heads`.
  void declare();
  // Stores the merged state into the block of states at `states`.
  void store(const std::string& states);
  // Results and outputs from the merged state.
  void write_outputs();

  // The same in registers (split_kv_merge_registers.cpp). Declares the merged state, uninitialised.
  void declare_state();
  // Merges `count` blocks of states at `states` in shared memory.
  void merge_shared(const std::string& states, int count);
  // Merges those at `states` in global memory: loads as many as registers hold before it uses the
  // first. `count`: an int.
  void merge_global(const std::string& states, const std::string& count, std::optional<int> known);
  // Results and outputs, four columns at a time.
  void write_fours();

 private:
  size_t accumulators() const { return form_.rows.accumulators.size(); }
  size_t references() const { return form_.rows.references.size(); }
  int count_place() const { return static_cast<int>(accumulators() + references()); }
  int head() const { return state_head(form_); }
  int threads_of_row() const { return threads_ / rows_; }
  int groups() const { return (tile_.columns() / 4 + threads_of_row() - 1) / threads_of_row(); }
  std::string for_heads(const std::string& body) const;
  std::string for_groups(const std::string& body) const;
  void bind_part();
  void merge_heads();
  void merge_parts(int parts, bool goes_on, const std::string& columns);
  std::string moved_values(const std::string& element, const std::string& into,
                           const std::string& before = "");
  std::string empty_head(const std::function<std::string(size_t)>& name);
  std::string merged_name(size_t place) const;
  std::string columns_of(const std::string& states) const;
  // The thread's row when it writes outputs, whether the row exists, and its state.
  void open_outputs();
  void write_four(const FlatStreaming::Output& output);
  void merge_accumulator(size_t k);
  void merge_values();
  void make_references(size_t done);

  MmaFold& tile_;
  const AttentionSpec& form_;
  Emitter& emitter_;
  const int rows_, threads_;
  std::string loop_;  // over the merged heads, each of them `part`
};

}  // namespace redfuser::codegen
