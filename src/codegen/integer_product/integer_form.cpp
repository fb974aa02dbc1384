#include "codegen/integer_product/integer_form.h"

#include <algorithm>

#include "codegen/matrix/matrix_layout.h"

namespace redfuser::codegen {
namespace {

using Axes = std::vector<ir::Expr>;

class FormBuilder {
 public:
  FormBuilder(StepBuilder& builder, const fuse::ProductStep& step)
      : builder_(builder), pool_(builder.pool()), step_(step) {
    form_.batch = step.batch;
    form_.rows = step.m;
    form_.columns = step.n;
  }

  std::variant<IntegerForm, std::string> build() {
    form_.k = step_.k->extent();
    while (!take_operands()) {
      if (!move_to_batch()) return "an operand is no matrix in memory";
    }
    form_.batches = count(form_.batch);
    form_.m = count(form_.rows);
    form_.n = count(form_.columns);
    if (!alike()) return "the right operands differ in type or layout";
    if (!take_epilogue()) return "what follows reads the result, or reduces";
    return std::move(form_);
  }

 private:
  ir::Expr count(const Axes& axes) { return product_of(pool_, extents_of(pool_, axes)); }

  bool take_operands() {
    auto a = operand(step_.a, form_.rows, step_.a_zero);
    if (!a) return false;
    form_.a = *a;
    form_.b.clear();
    for (size_t i = 0; i < step_.b.size(); ++i) {
      auto b = operand(step_.b[i], form_.columns, step_.b_zeros[i]);
      if (!b) return false;
      form_.b.push_back(*b);
    }
    return true;
  }

  // The outermost axis of a side of several: they are then one line after the other.
  bool move_to_batch() {
    for (Axes* side : {&form_.rows, &form_.columns}) {
      if (side->size() < 2) continue;
      form_.batch.push_back(side->front());
      side->erase(side->begin());
      return true;
    }
    return false;
  }

  std::optional<IntegerOperand> operand(ir::Expr operand, const Axes& lines, ir::Expr zero) {
    ir::Expr read = builder_.flat.flat(operand);
    ir::Expr offset = read->args[0];
    const auto layout = matrix_layout(pool_, without(offset, form_.batch), {}, lines, {step_.k});
    if (!layout) return std::nullopt;
    Axes inner = lines;
    inner.push_back(step_.k);
    IntegerOperand found{read->integer, read->dtype, without(offset, inner), layout->row,
                         layout->column};
    // Lines of one element, and a single line, have any stride.
    if (form_.k->is_constant(1)) found.depth = pool_.integer(1);
    if (count(lines)->is_constant(1)) found.line = pool_.integer(found.along() ? 0 : 1);
    if (zero != nullptr) found.zero = builder_.flat.flat(zero);
    return found;
  }

  ir::Expr without(ir::Expr offset, const Axes& axes) {
    std::vector<std::pair<ir::Expr, ir::Expr>> zeros;
    for (ir::Expr axis : axes) {
      if (axis->op == ir::ExprOp::Axis) zeros.emplace_back(axis, pool_.integer(0));
    }
    return zeros.empty() ? offset : pool_.substitute(offset, zeros);
  }

  bool alike() const {
    const IntegerOperand& first = form_.b[0];
    return std::all_of(form_.b.begin(), form_.b.end(), [&](const IntegerOperand& b) {
      return b.dtype == first.dtype && b.along() == first.along();
    });
  }

  bool take_epilogue() {
    form_.value = step_.value;
    form_.epilogue = builder_.flat.flat(step_.epilogue);
    form_.offset = builder_.offset_of(step_.value, step_.axes);
    form_.products.assign(step_.b.size(), nullptr);
    bool taken = true;
    visit(form_.epilogue, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Product) {
        form_.products.at(static_cast<size_t>(e->integer)) = e;
      }
      taken &= e->op != ir::ExprOp::Reduce;
      taken &= !(e->op == ir::ExprOp::Read && e->integer == form_.value);
    });
    return taken && std::count(form_.products.begin(), form_.products.end(), nullptr) == 0;
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::ProductStep& step_;
  IntegerForm form_;
};

}  // namespace

bool IntegerForm::sums_a() const {
  return std::any_of(b.begin(), b.end(), [](const IntegerOperand& each) { return each.zero; });
}

std::variant<IntegerForm, std::string> integer_form(StepBuilder& builder,
                                                    const fuse::ProductStep& step) {
  return FormBuilder(builder, step).build();
}

}  // namespace redfuser::codegen
