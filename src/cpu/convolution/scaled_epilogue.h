// Epilogues of integer convolutions that make floats of the sums in one pass.
#pragma once

#include <memory>
#include <optional>

#include "cpu/opaque/image/sums.h"
#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

// activation(sum · scale + offset), or of that and an element of a tensor of the output's sizes:
// numbers of each filter or of all of them, which a run may decide, and a function that kernels
// compute in registers (activation_of).
class ScaledEpilogue {
 public:
  // Of an integer convolution with an epilogue; nullopt for others. float32 only.
  static std::optional<ScaledEpilogue> of(const StepForm& form);

  // Of a run whose output is allocated. This must outlive the result.
  std::unique_ptr<SumsTarget> sums(RunContext& context) const;

 private:
  friend class ScaledSums;

  // Element offset + step · filter of a value, or a number where there is none.
  struct Numbers {
    ir::ValueId value = ir::kAbsent;
    float number = 0;
    int64_t offset = 0, step = 0;
  };
  // Of an expression that no element decides but its filter.
  static std::optional<Numbers> numbers_of(const StepForm& form, ir::Expr e, ir::Expr filter);
  // The sum times `scale` plus `offset`; false for other expressions.
  bool take_head(const StepForm& form, ir::Expr e, ir::Expr filter);

  ir::ValueId value_ = ir::kAbsent, residual_ = ir::kAbsent;
  int64_t filters_ = 0, positions_ = 0;
  Numbers scale_;
  std::optional<Numbers> offset_;
  Activation each_;
};

}  // namespace redfuser::cpu
