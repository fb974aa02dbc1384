#include "codegen/attention/mask_check.h"

#include <fmt/format.h>

#include <cmath>

#include "cascade/visibility/magnitude.h"
#include "cascade/visibility/masked_operands.h"
#include "codegen/attention/mask_condition.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {
namespace {

constexpr int kThreads = 512, kBlocksOfMultiprocessor = 2;

class Check {
 public:
  Check(StepBuilder& builder, const AttentionSpec& form, const MaskCondition& mask)
      : builder_(builder), pool_(builder.pool()), form_(form) {
    add_reads(form.value, operands_);
    for (size_t k = 0; k < form.rows.accumulators.size(); ++k) {
      const cascade::Accumulator& a = form.rows.accumulators[k];
      ir::Expr lift = form.lift_of(k);
      add_masked_operands(pool_, a.reduction, lift, operands_);
      if (std::isinf(mask.largest_score)) continue;
      // Visible scores must outweigh a finite fill.
      ir::Expr seen = where_visible(pool_, mask.visible, lift);
      add_reads(seen, operands_);
      operands_.bounds.push_back({magnitude_of(seen), mask.largest_score});
    }
  }

  size_t values() const { return operands_.values.size(); }

  // Whether all operands that must be finite can be read here, and all bounds are known.
  bool possible() const {
    bool result = operands_.decidable;
    for (const int64_t value : operands_.values) {
      if (value < 0) return false;
      const DType dtype = builder_.dtype_of(value);
      result &= value < kScratchValues && dtype != DType::Float64 && size_of(dtype) >= 2;
    }
    for (const cascade::MaskedOperands::Bound& bound : operands_.bounds) {
      visit(bound.magnitude, [&](ir::Expr e) {
        result &= !e->is_constant() || (is_float(e->dtype) && std::isfinite(e->number));
      });
    }
    return result;
  }

  KernelLaunch launch(int64_t result, int blocks) const {
    KernelText kernel = builder_.kernel();
    Emitter emitter(kernel);
    const std::string found = kernel.buffer(result, true);
    std::string operands, holds;
    for (size_t i = 0; i < values(); ++i) {
      const int64_t value = operands_.values[i];
      operands += fmt::format(", mask_operand({}, {})", kernel.buffer(value),
                              kernel.size(product_of(pool_, builder_.shape(value))));
      holds += fmt::format("{}largest[{}] < INFINITY_F", i > 0 ? " && " : "", i);
      emitter.bind(cascade::largest_of(pool_, value),
                   fmt::format("static_cast<double>(largest[{}])", i));
    }
    for (const cascade::MaskedOperands::Bound& bound : operands_.bounds) {
      holds += fmt::format(" && {} < {}", emitter.emit(bound.magnitude),
                           literal(bound.limit, DType::Float64));
    }
    const std::string text =
        fmt::format("check_masks<{}>({}, {}, [&](const float* largest) {{\n{}return {};\n}}{});\n",
                    kThreads, found, kernel.counter(), emitter.close(), holds, operands);
    KernelLaunch launch = kernel.launch("mask_check", form_.rows.comment,
                                        {"device/attention/mask_check.cuh"}, "", text, kThreads);
    launch.grid[0] = pool_.integer(blocks);
    launch.static_shared = kThreads / 32 * 16 + 16;  // a slot for each warp, and `before`
    return launch;
  }

 private:
  // Exponentials of differences from a row's maximum are at most 1 for visible elements. A row's
  // divisor is not part of an element.
  ir::Expr magnitude_of(ir::Expr lift) const {
    const cascade::KnownBound known = [&](ir::Expr e) -> ir::Expr {
      if (e->op == ir::ExprOp::Read && is_float(e->dtype))
        return cascade::largest_of(pool_, e->integer);
      if (e->op == ir::ExprOp::Leaf) return pool_.number(0, DType::Float64);
      if (e->op == ir::ExprOp::Exp && e->has_leaf) return pool_.number(1, DType::Float64);
      if (e->op == ir::ExprOp::Div && e->args[1]->has_leaf && !e->args[1]->has_read) {
        return cascade::magnitude(pool_, e->args[0], known);
      }
      return nullptr;
    };
    return cascade::magnitude(pool_, lift, known);
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const AttentionSpec& form_;
  cascade::MaskedOperands operands_;
};

}  // namespace

std::optional<KernelLaunch> mask_check(StepBuilder& builder, AttentionSpec& form) {
  if (!builder.target.exact_masks) return std::nullopt;
  const MaskCondition mask = mask_condition(builder.pool(), form);
  if (!mask.skips()) return std::nullopt;
  const Check check(builder, form, mask);
  form.visits_hidden = !check.possible();
  if (form.visits_hidden) return std::nullopt;
  const int blocks = builder.target.multiprocessors * kBlocksOfMultiprocessor;
  const auto floats = static_cast<int64_t>(1 + static_cast<size_t>(blocks) * check.values());
  form.mask_check = builder.add_scratch(DType::Float32, builder.pool().integer(floats));
  return check.launch(form.mask_check, blocks);
}

}  // namespace redfuser::codegen
