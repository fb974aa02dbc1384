// The text of a Hopper attention kernel in the making; its parts are in the files of the same
// prefix.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/attention_hopper.h"
#include "codegen/score_form.h"

namespace redfuser {

class HopperText {
 public:
  HopperText(StepBuilder& builder, const AttentionForm& form, const HopperOperands& operands,
             const HopperConfig& config);
  KernelLaunch launch();

 private:
  // attention_hopper_kernel.cpp: the block's work, its barriers, the producer, the consumers' loop.
  void declare_views();
  void place_block();
  void declare_memory();
  std::string producer();
  std::string copies(const std::string& view, const std::string& tile, int lines, int columns,
                     const std::string& barrier, const std::string& line,
                     const std::vector<std::string>& coordinates) const;
  std::string consumer();
  std::string first_tile();
  std::string next_tiles();
  int tile_bytes(int lines, int columns) const;
  int shared_bytes() const;

  // attention_hopper_state.cpp: a tile of scores folded into the state.
  void declare_state();
  std::string fold_tile();  // leaves weights in s and new states in b
  std::string fold_scores(bool masked);
  void fold_phase(size_t phase, bool masked);
  void fold_element(size_t phase, bool masked);
  std::vector<std::pair<Expr, std::string>> positions(size_t phase);
  struct Exponential {  // exp(rest · scale / log2 e - a reference), the latter as `shift`
    Expr expr, rest;
    std::string scale, shift;
  };
  std::vector<Exponential> exponentials(size_t phase);
  void place_element(bool masked);
  void bind_score(size_t phase);
  bool reduces_kept(size_t k) const;
  void update_state(size_t k);
  void make_references(size_t done);
  std::string move_values();  // transports o
  std::string adopt_state();

  // attention_hopper_finish.cpp: results and outputs.
  std::string outputs();
  void finish();

  void open_row();
  std::string close_row();
  void bind_all(LeafKind kind, int64_t index, const std::string& text, DType dtype);
  void bind_references();
  void bind_old_state();
  bool is_value(size_t k) const { return k == score_.value; }
  std::vector<Expr> lifts_of(size_t phase) const;
  static std::string unrolled(const std::string& variable, int count, const std::string& body);

  StepBuilder& builder_;
  ExprPool& pool_;
  const AttentionForm& form_;
  const HopperOperands& operands_;
  const HopperConfig config_;
  const ScoreForm score_;
  const RowForm& rows_;
  KernelText kernel_;
  Emitter emitter_;
  std::vector<Expr> leaves_;
  std::set<size_t> ready_;
  std::string type_, keys_, row_count_, query_view_, key_view_, value_view_;
  std::vector<std::string> query_at_, key_at_, value_at_;
  int depth_ = 0, columns_ = 0;
};

}  // namespace redfuser
