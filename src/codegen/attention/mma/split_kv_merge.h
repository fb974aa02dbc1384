// States of attention rows in memory, and how several of the same rows become one: a warp's are
// merged with those of the block's other warps, a block's with those of other segments.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/attention/mma/mma_fold.h"

namespace redfuser::codegen {

// Floats of a row's scalars, references and count.
int state_head(const AttentionSpec& form);
// Floats of a block of states: the heads of its rows, then their columns.
int state_block(const AttentionSpec& form, int rows);

class SplitKvMerge {
 public:
  // A block of states has `rows`, a power of two up to 16, and is merged by `threads`.
  SplitKvMerge(MmaFold& tile, const AttentionSpec& form, int rows, int threads);

  // Stores the registers of the warp's tile into `states`, its block of states.
  void store_registers(const std::string& states);
  // Declares `merge(heads, head_stride, states, count)`, which sets the merged state from blocks of
  // states one after the other, with their heads at `heads`; and that state itself: every thread
  // has some columns of one row, `line`.
  void declare();
  // Stores the merged state into the block of states at `states`.
  void store(const std::string& states);
  // Results and outputs from the merged state.
  void write_outputs();

  // The same in registers, attention_merge_parts.cpp. Declares the merged state, still without a
  // value.
  void declare_state();
  // Merges `count` blocks of states that lie at `states` in shared memory.
  void merge_shared(const std::string& states, int count);
  // Those at `states` in global memory: as many as registers hold are read before the first is
  // used. `count`: an int.
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
  // The block that writes: its row, whether that exists, and its state.
  void open_outputs();
  void write_four(const FlatStreaming::Output& output);
  void merge_accumulator(size_t k);
  void merge_values();
  void make_references(size_t done);

  MmaFold& tile_;
  const AttentionSpec& form_;
  Emitter& emitter_;
  const int rows_, threads_;
  std::string loop_;  // over the heads that are merged, `part` each
};

}  // namespace redfuser::codegen
