// The text of an attention kernel for wide values: its own schedule around the folds of
// HopperText.
#pragma once

#include <string>

#include "codegen/attention/hopper/text.h"
#include "codegen/attention/large_head/config.h"
#include "codegen/attention/visible_keys.h"

namespace redfuser::codegen {

class LargeHeadText : public HopperText {
 public:
  LargeHeadText(StepBuilder& builder, const AttentionSpec& form, const HopperScores& scores,
                const HopperOperands& operands, const LargeHeadConfig& config,
                const Segments& segments);
  KernelLaunch launch();

 private:
  // attention_wide_kernel.cpp: a block's work, its barriers, the producer, the consumers.
  void declare_memory();
  void place_work();
  std::string producer();
  std::string consumer();

  // attention_wide_tile.cpp: both groups' loop over tiles.
  std::string first_key(const std::string& tile) const override;
  std::string first_tile();
  std::string next_tiles();
  void place_tile();
  // Of the tile's parts from `begin` to `end`.
  std::string start_scores(int begin, int end, bool first) const;
  std::string release_keys(const std::string& use) const;
  void publish_weights();
  std::string start_values(const std::string& use) const;
  std::string place_values(const std::string& use) const;

  // attention_wide_scorer.cpp: the loops where one group computes the scores.
  std::string scorer();
  void leave_weights(bool first);
  std::string follower();
  std::string reference_place(size_t r) const;
  std::string start_all_values(const std::string& use, const std::string& weights) const;
  void share_accumulators();
  bool values_apart() const { return wide_.value_stages > 0; }

  // attention_wide_fold.cpp: a tile of scores folded by both groups.
  std::string fold_wide_tile();
  void fold_phase(const ScoreSpec& score, size_t phase, bool tail) override;
  bool exchanges() const;
  // Of both groups' <name><k>[2] for the rows, of these accumulators, the reduction.
  void exchange(const std::vector<size_t>& accumulators, const std::string& name);

  // attention_wide_finish.cpp: outputs, or states of a segment.
  void finish_rows();
  void store_states();
  std::string head_stores() const;  // of row h into `state`

  // attention_wide_cluster.cpp: the states of a cluster's blocks become one, of which each block
  // has a part of the columns.
  void finish_cluster();
  std::string merge_cluster();
  // Blocks' states, block i being of a loop `for`: names of row h's head and of what o[n][x] is
  // merged from.
  struct States {
    std::string loop;  // up to the loop's body
    std::string head;  // of the number of a place: "heads[i][h * 8 + {}]"
    std::string value;
  };
  void bind_states(const States& states);
  void merge_heads(const States& states);
  void merge_references(size_t done);
  void merge_values(const States& states);

  const LargeHeadConfig wide_;
  const LargeHeadLayout layout_;
  const int parts_;  // of a tile's keys
  const Segments segments_;
};

}  // namespace redfuser::codegen
