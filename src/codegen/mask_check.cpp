#include "codegen/mask_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cascade/magnitude.h"
#include "codegen/mask_condition.h"

namespace redfuser {
namespace {

constexpr int kThreads = 512, kBlocksOfMultiprocessor = 2;

class Check {
 public:
  Check(StepBuilder& builder, const AttentionForm& form, const MaskCondition& mask)
      : builder_(builder), pool_(builder.pool()), form_(form), mask_(mask), bound_(number(0)) {
    add_values(form.value);
    for (size_t k = 0; k < form.rows.accumulators.size(); ++k) {
      Expr lift = k == form.value_accumulator ? form.weight : form.rows.accumulators[k].lift;
      add_values(lift);
      bound_ =
          pool_.make(ExprOp::Max, {bound_, bound_of(where_visible(pool_, mask.visible, lift))});
    }
  }

  // All that is read can be checked, and the scores have a bound.
  bool possible() const {
    bool bounded = true;
    visit(bound_, [&](Expr e) {
      bounded &= !e->is_constant() || (is_float(e->dtype) && std::isfinite(e->number));
    });
    return possible_ && bounded;
  }

  // A grid's blocks leave their largest magnitudes; the last one tells, in the first element.
  KernelLaunch launch(int64_t result, int blocks) const {
    KernelText kernel = builder_.kernel();
    Emitter emitter(kernel);
    const std::string found = kernel.buffer(result, true);
    const size_t count = values_.size();
    std::string own, others, finite;
    for (size_t i = 0; i < count; ++i) {
      const std::string elements = kernel.size(product_of(pool_, builder_.shape(values_[i])));
      own += fmt::format(
          "float m{0} = block_reduce<{1}, MaxOp>(largest_magnitude({2}, {3}, first, step), "
          "slots);\n"
          "__syncthreads();\nif (threadIdx.x == 0) {4}[1 + blockIdx.x * {5} + {0}] = m{0};\n",
          i, kThreads / 32, kernel.buffer(values_[i]), elements, found, count);
      others += fmt::format(
          "m{0} = 0;\nfor (unsigned block = threadIdx.x; block < gridDim.x; block += {1}) {{\n"
          "m{0} = max_of(m{0}, {2}[1 + block * {3} + {0}]);\n}}\n"
          "m{0} = block_reduce<{4}, MaxOp>(m{0}, slots);\n__syncthreads();\n",
          i, kThreads, found, count, kThreads / 32);
      finite += fmt::format("m{} < INFINITY_F && ", i);
      emitter.bind(leaf(values_[i]), fmt::format("static_cast<double>(m{})", i));
    }
    emitter.line(fmt::format(
        "__shared__ __align__(16) char slots[{} * kSlotBytes];\n__shared__ unsigned before;\n"
        "const long long first = blockIdx.x * {}ll + threadIdx.x, step = gridDim.x * {}ll;\n{}"
        "if (threadIdx.x == 0) before = ptx_count({}, gridDim.x - 1);\n__syncthreads();\n"
        "if (before != gridDim.x - 1) return;\n{}",
        kThreads / 32, kThreads, kThreads, own, kernel.counter(), others));
    const std::string bound = emitter.emit(bound_);
    emitter.line(fmt::format("if (threadIdx.x == 0) {}[0] = {}{} <= {} ? 1.0f : 0.0f;", found,
                             finite, bound, literal(mask_.largest_score, DType::Float64)));
    KernelLaunch launch =
        kernel.launch("mask_check", comment_of(form_.rows.comment),
                      {"ptx", "ptx_split", "math", "types", "reduce", "magnitude"}, "",
                      emitter.close(), kThreads);
    launch.grid[0] = pool_.integer(blocks);
    return launch;
  }

  size_t values() const { return values_.size(); }

 private:
  Expr number(double value) const { return pool_.number(value, DType::Float64); }
  Expr leaf(int64_t value) const { return pool_.leaf(LeafKind::Result, value, DType::Float64); }

  // What floats are computed from; conditions and indices hide nothing.
  void add_values(Expr e) {
    if (e->dtype == DType::Bool || !is_float(e->dtype)) return;
    if (e->op != ExprOp::Read) {
      for (Expr arg : e->args) add_values(arg);
      return;
    }
    possible_ &= e->integer >= 0 && e->integer < kScratchValues && e->dtype != DType::Float64 &&
                 size_of(e->dtype) >= 2;
    if (std::find(values_.begin(), values_.end(), e->integer) == values_.end()) {
      values_.push_back(e->integer);
    }
  }

  // Exponentials of differences from a row's maximum are at most 1 where they are visible; what
  // rows divide by is no part of an element.
  Expr bound_of(Expr lift) {
    const KnownBound known = [&](Expr e) -> Expr {
      if (e->op == ExprOp::Read && is_float(e->dtype)) return leaf(e->integer);
      if (e->op == ExprOp::Leaf) return number(0);
      if (e->op == ExprOp::Exp && e->has_leaf) return number(1);
      if (e->op == ExprOp::Div && e->args[1]->has_leaf && !e->args[1]->has_read) {
        return magnitude(pool_, e->args[0], known);
      }
      if (e->is_constant() && is_float(e->dtype) && std::isinf(e->number)) return number(0);
      return nullptr;
    };
    return magnitude(pool_, lift, known);
  }

  StepBuilder& builder_;
  ExprPool& pool_;
  const AttentionForm& form_;
  const MaskCondition& mask_;
  std::vector<int64_t> values_;
  Expr bound_;  // of the scores, over leaves of the values
  bool possible_ = true;
};

}  // namespace

std::optional<KernelLaunch> mask_check(StepBuilder& builder, AttentionForm& form) {
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

}  // namespace redfuser
