// The functions of a Form for bias tiles (src/device/attention/hopper_loop.cuh): key and diagonal
// terms of the scores, which a warpgroup evaluates once for a tile into its own part of shared
// memory, together with the question whether all keys of the tile are visible; and strips, of which
// each warp copies its own rows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "codegen/attention/attention_functor.h"
#include "codegen/attention/hopper/config.h"

namespace redfuser::codegen {

class BiasText {
 public:
  // All must outlive this.
  BiasText(KernelText& kernel, const AttentionSpec& form, const HopperScores& scores,
           const HopperConfig& config, const AttentionFunctor& functor);

  // Whether elements have bias, or a mask by key. Without, these functions are those of
  // PlainScores (src/device/attention/score_fold.cuh).
  bool loads() const { return scores_.has_terms() || has_strips(); }
  std::string functions();
  // load_bias() of a phase: the bias of two adjacent elements that its lifts need.
  std::string load_bias(const ScoreSpec& score, size_t phase, const char* tag) const;
  // The values that an element has in its Pair.
  std::vector<std::pair<ir::Expr, std::string>> values() const;

 private:
  struct Placed {  // a value at a place that a thread has, and its reads
    ir::Expr value, place;
    std::string index, name;
    std::vector<ir::Expr> reads;
    std::string read(size_t i) const { return fmt::format("{}_read{}", name, i); }
  };
  Placed placed(ir::Expr value, ir::Expr place, std::string index, std::string name) const;
  Emitter emitter() const;
  std::string emit(Emitter& emitter, const Placed& placed) const;
  std::string key_at(int from) const;

  std::string constants() const;
  std::string structs() const;
  std::string load_terms() const;
  std::string store_terms() const;
  std::string copy_strips() const;
  std::string copy_strip(size_t i) const;
  int term_offset(size_t t) const;
  int strip_offset(size_t i) const;
  bool has_strips() const { return config_.strips && !scores_.strips.empty(); }

  ir::ExprPool& pool_;
  KernelText& kernel_;
  const AttentionSpec& form_;
  const HopperScores& scores_;
  const HopperConfig config_;
  const AttentionFunctor& functor_;
  std::string rows_, keys_;                 // their numbers
  std::vector<std::vector<Placed>> terms_;  // of 128 places each
  std::vector<Placed> visible_;             // at most one
};

}  // namespace redfuser::codegen
