// The text of lift(): a score of an element becomes its part of the accumulators of a phase
// (src/device/attention/score_fold.cuh).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/attention/hopper/config.h"

namespace redfuser::codegen {

class ElementText {
 public:
  // In the current scope of the emitter, in which the row's coordinates and references are bound.
  // `bias`: values that the element has in its Pair. All must outlive this.
  ElementText(Emitter& emitter, const AttentionSpec& form, const ScoreSpec& score, size_t phase,
              const std::vector<std::pair<ir::Expr, std::string>>& bias);

  // The statements, on the parameters of lift(). `checks`: the element may not exist.
  void write(bool checks);

 private:
  struct Special {  // exp2(rest · scale + shift), or a tanh
    ir::Expr expr, rest;
    std::string scale, shift;
  };
  // Whether an element may be so large that its product with log2(e) is not finite.
  bool may_be_large(ir::Expr e) const;
  bool is_bias(ir::Expr e) const;
  // Whether `e` stands for itself in this phase, and its operands are not computed.
  bool ends_at(ir::Expr e) const;
  std::vector<ir::Expr> roots() const;

  void bind_positions();
  void bind_position(ir::Expr e, ir::Expr cast);
  std::vector<Special> specials();
  void bind_special(const Special& special);
  void bind_score();

  ir::ExprPool& pool_;
  Emitter& emitter_;
  const AttentionSpec& form_;
  const ScoreSpec& score_;
  const size_t phase_;
  const std::vector<std::pair<ir::Expr, std::string>>& bias_;
  // What s has before write(); a variable of its own where phase 0 replaces it.
  const std::string raw_;
  std::vector<ir::Expr> positions_;
};

// A literal of fp32.
std::string float_text(double value);

}  // namespace redfuser::codegen
