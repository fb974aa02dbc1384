// The arithmetic of attention rows on sm_90a, and the places of their operands, as a struct: the
// Form of src/device/attention/score_fold.cuh, hopper_loop.cuh and large_head_loop.cuh.
#pragma once

#include <string>
#include <vector>

#include "codegen/attention/attention_functor.h"
#include "codegen/attention/fold_functions.h"
#include "codegen/attention/hopper/bias_text.h"
#include "codegen/attention/hopper/config.h"
#include "codegen/attention/visible_keys.h"

namespace redfuser::codegen {

class HopperFunctor {
 public:
  // `config`: the keys of a tile, and whether strips are copied. All must outlive this.
  HopperFunctor(StepBuilder& builder, const AttentionSpec& form, const HopperScores& scores,
                const HopperOperands& operands, const HopperConfig& config);

  KernelText& kernel() { return kernel_; }
  // struct State and struct Form, at namespace scope. `merges`: with the functions of merge.cuh;
  // `exchanges`: with those that join the parts of two warpgroups.
  std::string text(bool merges, bool exchanges);
  // The text of a Form of the kernel that text() is for.
  const std::string& construction() const { return functor_.construction(); }
  // Of the operands, with a slab of so many lines as the box of the tensor map.
  std::string query(int lines);
  std::string key(int lines);
  std::string value(int lines);
  // The numbers of rows and keys.
  std::string lines();
  std::string length();
  // Whether a mask hides tiles from some rows.
  bool skips() const { return scores_.mask.skips(); }

 private:
  std::vector<ir::Expr> inner() const;
  bool is_even() const;
  const ScoreSpec& score(bool whole) const { return whole ? scores_.whole : scores_.masked; }
  Emitter emitter();

  std::string scores();
  std::string whole();
  bool maps() const;
  std::string map(bool whole) const;
  std::string lift(bool whole, size_t phase);
  std::string reduce(bool whole, size_t phase) const;
  std::string join_lanes() const;
  std::string exchange() const;

  ir::ExprPool& pool_;
  const AttentionSpec form_;  // with reciprocals
  const HopperScores& scores_;
  const HopperOperands& operands_;
  const FlatStreaming& rows_;
  const int keys_;
  const VisibleKeys visible_;
  const cascade::TileRanges by_tile_;
  const std::vector<Phase>& phases_;
  KernelText kernel_;
  AttentionFunctor functor_;
  const FoldFunctions fold_;
  BiasText bias_;
};

}  // namespace redfuser::codegen
