// Assembles a Streaming stage by stage; internal to src/cascade.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cascade/derive/derive.h"

namespace redfuser::cascade {

class StreamingBuilder {
 public:
  StreamingBuilder(ir::ExprPool& pool, const Cascade& cascade);

  ir::ExprPool& pool() const { return pool_; }
  const Cascade& cascade() const { return cascade_; }
  StageScope scope(size_t stage) const;

  // The number of an accumulator equal to this one, added if there is none.
  int accumulate(Accumulator accumulator);
  ir::Expr state(int accumulator) const;
  // The number of a reference with this value (over Result leaves and Count).
  int refer(ir::Expr value);
  ir::Expr old_reference(int reference, DType dtype);
  ir::Expr new_reference(int reference, DType dtype);
  // Results of stages replaced by their running values over State leaves.
  ir::Expr running(ir::Expr over_results);

  void finish(size_t stage, ir::Expr value, Form form);
  Streaming streaming;
  std::vector<StageReport> reports;

 private:
  ir::ExprPool& pool_;
  const Cascade& cascade_;
  std::vector<ir::Expr> running_finish_;  // `streaming.finish` over State leaves
};

// Π of a term's streamed factors, times exp(Σ exp_x - safe) where `safe` is given; factors with
// columns come last, as one operand.
ir::Expr lift_of(StreamingBuilder& builder, size_t stage, const Term& term, ir::Expr safe,
                 DType dtype);

// Each adds its stage to the builder or says why it cannot.
std::optional<Refusal> derive_sum(StreamingBuilder& builder, size_t stage);
std::optional<Refusal> derive_product(StreamingBuilder& builder, size_t stage);
std::optional<Refusal> derive_extremum(StreamingBuilder& builder, size_t stage);
// True if the stage is a polynomial of degree two or more in streamed values, and was added in
// translated form.
bool derive_moments(StreamingBuilder& builder, size_t stage, const std::vector<Term>& terms);

}  // namespace redfuser::cascade
