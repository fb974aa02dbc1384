// Attention on sm_90a: a warpgroup that copies tiles through rings in shared memory, and one to
// three that multiply them (wgmma) and fold the scores into the state, in turns, so that the
// arithmetic of one hides under the products of the others.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"
#include "codegen/attention/bias_tiles.h"
#include "codegen/attention/mask_condition.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/tma_view.h"

namespace redfuser::codegen {

struct HopperConfig {
  int groups = 2;       // warpgroups of 64 rows each: 1 to 3
  int keys = 128;       // of a tile; a multiple of 16
  int stages = 2;       // tiles of keys, and of values, in flight
  int queries = 1;      // tiles of rows in flight
  bool strips = false;  // the scores' strips are copied to shared memory

  Parameters parameters() const {
    return {{"groups", groups},
            {"keys", keys},
            {"stages", stages},
            {"queries", queries},
            {"strips", strips ? 1 : 0}};
  }
};

// The scores as the family computes them.
struct HopperScores {
  MaskCondition mask;
  // mask.visible is by_tile and by_key: what indices tell of a tile, and what is read for every key
  // (null: nothing is).
  ir::Expr by_tile, by_key;
  ScoreSpec masked, whole;  // whole: of tiles that the mask leaves as they are
  std::vector<BiasTile> terms;
  std::vector<ScoreStrip> strips;

  bool has_terms() const { return !terms.empty() || by_key; }
};

struct HopperOperands {
  TmaOperand query, key, value;
};

// nullopt unless the target is sm_90, the operands are halves that the copy engine can fetch, and
// the weights are what the last pass over a tile computes.
std::optional<HopperOperands> hopper_operands(StepBuilder& builder, const AttentionSpec& form);

// The same of any sizes.
std::optional<HopperOperands> tma_operands(StepBuilder& builder, const AttentionSpec& form);

HopperScores hopper_scores(ir::ExprPool& pool, const AttentionSpec& form);

// The default for a form's sizes. Head sizes are at most 256.
HopperConfig hopper_config(const StepBuilder& builder, const AttentionSpec& form,
                           const HopperScores& scores);

// What fits of row tiles of so many groups and tiles of so many keys: with two row tiles in flight,
// and with one and more stages.
std::vector<HopperConfig> hopper_configs(const Target& target, const AttentionSpec& form,
                                         const HopperScores& scores, int groups, int keys);

// Of 1 to `most` groups, those whose row tiles take the least time by estimate; `most` where sizes
// are not known.
int choose_warpgroups(const StepBuilder& builder, const AttentionSpec& form,
                      const HopperScores& scores, int keys, int most);

// Row tiles in flight, of so many groups: 2, so that the next one's queries come while one is
// computed. 1 where few row tiles are unequal: to bring one's queries is to claim it, and it would
// wait while other blocks are out of work.
int hopper_queries(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, int groups);

// Microseconds by estimate, of sizes that are known.
double hopper_time(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, const HopperConfig& config, const KnownSizes& sizes);

// Dynamic shared memory of a block.
int hopper_shared_bytes(const AttentionSpec& form, const HopperScores& scores,
                        const HopperConfig& config);

// That of one group for the score terms' two buffers, and for its part of the strips behind them.
int hopper_term_bytes(const HopperScores& scores, const HopperConfig& config);
int hopper_strip_bytes(const HopperScores& scores, const HopperConfig& config);

KernelLaunch hopper_attention_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const HopperScores& scores, const HopperOperands& operands,
                                     const HopperConfig& config);

}  // namespace redfuser::codegen
