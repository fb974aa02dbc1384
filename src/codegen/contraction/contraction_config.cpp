#include "codegen/contraction/contraction_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "codegen/text/type_text.h"
#include "ir/polynomial.h"
#include "ir/scalars/operations.h"
#include "select/instructions.h"

namespace redfuser::codegen {
namespace {

constexpr ContractionConfig kConfigs[] = {
    {128, 128, 8, 8, 8}, {64, 64, 16, 4, 4},  {32, 64, 16, 2, 4}, {32, 32, 16, 2, 2},
    {16, 128, 16, 1, 8}, {128, 16, 16, 8, 1}, {16, 32, 16, 1, 2}, {16, 16, 32, 1, 1},
};
constexpr int kSharedBytes = 48 * 1024;  // of a block, without asking for more
constexpr int kMostRegisters = 180;

int value_bytes(DType dtype) {
  if (dtype == DType::Bool || is_low_bit_float(dtype)) return 1;
  return is_float(dtype) && dtype != DType::Float64 ? 4 : 8;
}

int words(int bytes) { return (bytes + 3) / 4; }

bool has_costly(const std::vector<ir::Expr>& parts) {
  bool found = false;
  for (ir::Expr part : parts) {
    visit(part, [&](ir::Expr e) {
      found |= is_float(e->dtype) && !e->args.empty() && e->op != ir::ExprOp::Read &&
               ir::scalar_op(e->op).costly;
    });
  }
  return found;
}

// Of the expression, down to the parts.
double instructions_of(ir::Expr root, const std::vector<ir::Expr>& parts) {
  std::set<ir::Expr> seen(parts.begin(), parts.end());
  double count = 0;
  const auto go = [&](const auto& self, ir::Expr e) -> void {
    if (!seen.insert(e).second || e->is_constant()) return;
    count += select::instructions_of(e);
    for (ir::Expr arg : e->args) self(self, arg);
  };
  go(go, root);
  return count;
}

// Of an element's parts, its place and its way through shared memory included.
double element_instructions(const std::vector<ir::Expr>& parts) {
  constexpr double kPlace = 12;
  double count = kPlace;
  for (ir::Expr part : parts) {
    count += instructions_of(part, {});
    visit(part,
          [&](ir::Expr e) { count += e->op == ir::ExprOp::Read ? select::kLoadInstructions : 0; });
  }
  return count;
}

// Of a term, once for each row and column. The reduction of a product is its multiply-add.
double term_instructions(const ContractionForm& form) {
  std::vector<ir::Expr> parts = form.a;
  parts.insert(parts.end(), form.b.begin(), form.b.end());
  const bool sum = form.reduce->reduction == ir::Reduction::Sum;
  const bool fused = sum && is_float(form.term->dtype) && form.term->op == ir::ExprOp::Mul;
  double own = fused ? 0 : is_float(form.term->dtype) ? 1 : 2;
  if (form.term->dtype == DType::Float64) own *= 2;
  return std::max(instructions_of(form.term, parts) + own, 1.0);
}

double points(const KnownSizes& sizes, const std::vector<ir::Expr>& axes) {
  constexpr double kUnknown = 128;
  double product = 1;
  for (ir::Expr axis : axes) {
    const int64_t size = sizes.of(axis->extent());
    product *= size < 0 ? kUnknown : static_cast<double>(size);
  }
  return product;
}

// Of a result: those of neighbouring threads are adjacent, or a sector each.
double store_bytes(const StepBuilder& builder, const ContractionForm& form) {
  constexpr double kSector = 32;
  const auto affine = ir::affine_in(builder.pool(), form.store.offset, form.columns.back());
  const bool adjacent = affine && affine->stride->is_constant(1);
  return adjacent ? static_cast<double>(size_of(builder.dtype_of(form.store.value))) : kSector;
}

}  // namespace

Parameters ContractionConfig::parameters() const {
  return {{"rows", rows},
          {"columns", columns},
          {"depth", depth},
          {"rows_of_thread", rows_of_thread},
          {"columns_of_thread", columns_of_thread}};
}

int element_bytes(const std::vector<ir::Expr>& parts) {
  int bytes = 0, widest = 1;
  for (ir::Expr part : parts) {
    const int own = value_bytes(part->dtype);
    bytes = (bytes + own - 1) / own * own + own;
    widest = std::max(widest, own);
  }
  return (bytes + widest - 1) / widest * widest;
}

int shared_bytes(const ContractionForm& form, const ContractionConfig& config) {
  const auto stage = [&](int lines, const std::vector<ir::Expr>& parts) {
    const int bytes = element_bytes(parts), pad = bytes < 16 ? 16 / bytes : 1;
    return (config.depth * (lines + pad) * bytes + 15) / 16 * 16;
  };
  return stage(config.rows, form.a) + stage(config.columns, form.b);
}

int contraction_registers(const ContractionForm& form, const ContractionConfig& c) {
  constexpr int kBase = 40, kCostly = 40;  // the second of functions that reduce their argument
  const int a = words(element_bytes(form.a)), b = words(element_bytes(form.b));
  const int loads = c.depth * (c.rows * a + c.columns * b) / c.threads();
  const int base = kBase + (has_costly(form.a) || has_costly(form.b) ? kCostly : 0);
  return base + loads + c.rows_of_thread * a + c.columns_of_thread * b +
         c.rows_of_thread * c.columns_of_thread * words(value_bytes(form.reduce->dtype));
}

double contraction_time(const StepBuilder& builder, const KnownSizes& sizes,
                        const ContractionForm& form, const ContractionConfig& c) {
  // The share of the lanes that such loops reach; what a word of shared memory costs a thread
  // beside its instructions; the barriers and the first loads of a stage, microseconds.
  constexpr double kShare = 0.6, kWord = 1.0, kStage = 0.4, kStart = 1.5;
  const Target& target = builder.target;
  const double rows = std::ceil(points(sizes, form.rows) / c.rows),
               columns = std::ceil(points(sizes, form.columns) / c.columns);
  const double depth = points(sizes, form.depth), stages = std::ceil(depth / c.depth);
  const double blocks = points(sizes, form.batch) * rows * columns;
  const double read = kWord *
                      (c.rows_of_thread * words(element_bytes(form.a)) +
                       c.columns_of_thread * words(element_bytes(form.b))) /
                      (c.rows_of_thread * c.columns_of_thread);
  const double join = 1.0 * c.rows * c.columns * (term_instructions(form) + read);
  const double elements =
      c.rows * element_instructions(form.a) + c.columns * element_instructions(form.b);
  const double of_block = (join + elements) * depth / select::kLanes / kShare;  // cycles
  const double fits = std::floor(select::kRegistersOfMultiprocessor /
                                 (1.0 * contraction_registers(form, c) * c.threads()));
  const double shared =
      std::floor(1.0 * target.shared_bytes / (shared_bytes(form, c) + select::kBlockReserved));
  const double resident = std::max(std::min(fits, shared), 1.0);
  const double each = std::ceil(blocks / target.multiprocessors);  // of a multiprocessor
  const double waves = std::ceil(each / resident);
  const double busy = target.microseconds(each * of_block);
  std::vector<ir::Expr> axes = form.batch;
  for (const auto* more : {&form.rows, &form.columns}) {
    axes.insert(axes.end(), more->begin(), more->end());
  }
  const double stored = points(sizes, axes) * store_bytes(builder, form);
  const double bytes = select::work_of(std::array{form.store.body}, axes, sizes).bytes;
  const double staged =
      blocks * depth * (c.rows * element_bytes(form.a) + c.columns * element_bytes(form.b));
  const double memory =
      std::max((bytes + stored) / target.dram_rate, (staged + stored) / target.l2_rate());
  return select::kLaunchTime + kStart + std::max({busy, memory, waves * stages * kStage});
}

std::optional<ContractionChoice> contraction_choice(const StepBuilder& builder,
                                                    const KnownSizes& sizes,
                                                    const std::vector<ContractionForm>& forms) {
  std::optional<ContractionChoice> best;
  for (const ContractionForm& form : forms) {
    for (const ContractionConfig& config : kConfigs) {
      if (shared_bytes(form, config) > kSharedBytes) continue;
      if (contraction_registers(form, config) > kMostRegisters) continue;
      const double time = contraction_time(builder, sizes, form, config);
      if (!best || time < best->time) best = {&form, config, time};
    }
  }
  return best;
}

}  // namespace redfuser::codegen
