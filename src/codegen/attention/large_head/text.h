// Writes the CUDA text of the attention kernel for large heads: a schedule of its own around the
// folds of HopperText.
#pragma once

#include <string>

#include "codegen/attention/attention_functor.h"
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
  // mainloop.cpp: row tiles, barriers, the producer, the consumers.
  void declare_memory();
  void place_work();
  std::string producer();
  std::string consumer();

  // tile.cpp: the loop over tiles of both warpgroups.
  std::string first_key(const std::string& tile) const override;
  std::string first_tile();
  std::string next_tiles();
  void place_tile();
  // For the parts [begin, end) of a tile.
  std::string start_scores(int begin, int end, bool first) const;
  std::string release_keys(const std::string& use) const;
  void publish_weights();
  std::string start_values(const std::string& use) const;
  std::string place_values(const std::string& use) const;

  // one_group_scores.cpp: the loops if one warpgroup computes the scores.
  std::string scorer();
  void leave_weights(bool first);
  std::string follower();
  std::string reference_place(size_t r) const;
  std::string start_all_values(const std::string& use, const std::string& weights) const;
  void share_accumulators();
  bool values_apart() const { return wide_.value_stages > 0; }

  // two_group_fold.cpp: a tile of scores folded by both warpgroups.
  std::string fold_wide_tile();
  void fold_phase(const ScoreSpec& score, size_t phase, bool tail) override;
  bool exchanges() const;
  // Reduces <name><k>[2] of these accumulators over both warpgroups.
  void exchange(const std::vector<size_t>& accumulators, const std::string& name);

  // epilogue.cpp: outputs, or the states of a segment.
  void finish_rows();
  void declare_functor();
  void store_states();

  // cluster_merge.cpp: merges the states of a cluster's blocks; each block has a part of the
  // columns.
  void finish_cluster();

  const LargeHeadConfig wide_;
  const LargeHeadLayout layout_;
  const int parts_;  // of a Q or K tile
  const Segments segments_;
  AttentionFunctor functor_;
  std::string functor_text_;  // if states are stored
};

}  // namespace redfuser::codegen
