// Writes the CUDA text of the attention kernel for sm_90a. The schedule for large heads
// (attention/large_head/text.h) derives from it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cascade/visibility/tile_ranges.h"
#include "codegen/attention/hopper/config.h"
#include "codegen/attention/mask_condition.h"
#include "codegen/attention/score_form.h"
#include "codegen/attention/visible_keys.h"
#include "codegen/functor/leaf_names.h"

namespace redfuser::codegen {

class HopperText {
 public:
  HopperText(StepBuilder& builder, const AttentionSpec& form, const HopperScores& scores,
             const HopperOperands& operands, const HopperConfig& config);
  virtual ~HopperText() = default;
  KernelLaunch launch();

 protected:
  // mainloop.cpp: row tiles, barriers, the producer, the loop of the consumers.
  void declare_memory();
  void declare_schedule();
  void place_work();
  std::string producer();
  std::string consumer();
  std::string row_tile();
  // The first key of visited tile number `tile`.
  virtual std::string first_key(const std::string& tile) const;
  std::string first_tile();
  std::string next_tiles();
  int rows() const { return config_.groups * Warpgroup::kRows; }
  TmaTile query_tile() const { return {rows(), depth_}; }
  TmaTile key_tile() const { return {config_.keys, depth_}; }
  TmaTile value_tile() const { return {config_.keys, columns_}; }
  ir::Expr row_tiles() const;
  ir::Expr other_rows() const;

  // bias_tiles_text.cpp: key and diagonal terms of the scores, evaluated once for a tile.
  void declare_terms();
  struct LoadedTerm {
    std::string place;
    std::vector<std::pair<ir::Expr, std::string>> reads;
  };
  // The reads of a tile's terms are issued before the products, the values are computed during the
  // products. `use` counts the tiles of the kernel.
  void load_terms();
  LoadedTerm load_reads(ir::Expr value, ir::Expr place, const std::string& index);
  void store_terms(const std::string& use);
  // For row tiles in which the warpgroup has no row: the barrier of store_terms alone, because the
  // next row tile may overwrite the buffer of the last one.
  std::string skip_terms() const;
  std::string term_value(ir::Expr value, ir::Expr place, const LoadedTerm& loaded);
  // Starts the copies of the strips for the K/V tile that begins at key `first`.
  std::string copy_strips(const std::string& first);
  void copy_strip(size_t i);
  void wait_strips();
  // Loads the phase's terms and strips for eight keys, and binds the elements' names.
  void open_terms(const ScoreSpec& score, size_t phase);
  void open_term(size_t t);
  void open_strip(size_t i);
  void bind_terms();
  bool is_term(ir::Expr e) const;

  // softmax_state.cpp: folds a tile of scores into the state.
  void declare_state();
  std::string fold_tile();  // writes the weights to s and the new states to b
  // `tail`: for tiles that may extend beyond the last key.
  std::string fold_scores(const ScoreSpec& score, bool tail);
  virtual void fold_phase(const ScoreSpec& score, size_t phase, bool tail);
  void fold_element(const ScoreSpec& score, size_t phase, bool tail);
  using Bindings = std::vector<std::pair<ir::Expr, std::string>>;
  Bindings positions(const ScoreSpec& score, size_t phase);
  struct Special {  // exp(rest · scale / log2 e - a reference), the latter as `shift`; or a tanh
    ir::Expr expr, rest;
    std::string scale, shift;
  };
  std::vector<Special> specials(const ScoreSpec& score, size_t phase);
  void bind_special(const Special& special);
  void place_element(bool tail);
  void bind_score(const ScoreSpec& score, size_t phase);
  // The tile's reduction of accumulator k for row h, over the lanes that share the row or per lane.
  std::string tile_reduction(const ScoreSpec& score, size_t k) const;
  void update_state(const ScoreSpec& score, size_t k, const std::string& reduction);
  void make_references(size_t done);
  std::string move_values();  // rescales o
  std::string adopt_state();

  // epilogue.cpp: results and outputs.
  std::string outputs();
  void join_lanes();
  void write_rows();
  void write(const FlatStreaming::Output& output);
  ir::Expr by_reciprocals(ir::Expr e) const;
  void finish(bool rounded);

  void open_row();
  std::string close_row();
  void bind_references();
  void bind_old_state();
  bool is_value(size_t k) const { return k == form_.value_accumulator; }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const AttentionSpec& form_;
  const HopperOperands& operands_;
  const HopperConfig config_;
  const HopperScores& scores_;
  const MaskCondition& mask_;
  const VisibleKeys visible_;
  const cascade::TileRanges& ranges_;
  const cascade::TileRanges by_tile_;
  const ScoreSpec &masked_, &whole_;
  const FlatStreaming& rows_;
  KernelText kernel_;
  Emitter emitter_;
  LeafNames leaves_;
  std::set<size_t> ready_;
  std::vector<std::vector<LoadedTerm>> loaded_;  // per term, per 128 places
  LoadedTerm loaded_visible_;
  std::vector<std::pair<ir::Expr, std::string>> term_texts_;
  std::string type_, keys_, row_count_;
  int depth_ = 0, columns_ = 0;  // columns_: of V, those of the warpgroup
  // Number of keys in the state before the tile, and with it.
  std::string old_count_ = "static_cast<long long>(first)";
  std::string new_count_ = "static_cast<long long>(first + valid)";
  std::string first_column_;  // "name + ", the first column of the warpgroup
};

}  // namespace redfuser::codegen
