#include "codegen/chain/chain_form.h"

#include "codegen/cluster_product/cluster_config.h"

namespace redfuser::codegen {
namespace {

using Refusal = std::optional<std::string>;

class FormBuilder {
 public:
  FormBuilder(StepBuilder& builder, const fuse::Plan& plan) : builder_(builder), plan_(plan) {}

  std::variant<ChainForm, std::string> build(const fuse::ProductStep& first,
                                             const fuse::ProductStep& second) {
    if (first.of_integers() || second.of_integers()) return "an operand is of integers";
    if (auto refusal = take(first, form_.first)) return std::move(*refusal);
    if (auto refusal = take(second, form_.second)) return std::move(*refusal);
    if (auto refusal = take_operands()) return std::move(*refusal);
    if (auto refusal = follow()) return std::move(*refusal);
    if (reduces(form_.first) || reduces(form_.second)) {
      return "what follows a product reads its result or reduces";
    }
    return std::move(form_);
  }

 private:
  Refusal take(const fuse::ProductStep& step, ProductParts& parts) {
    const size_t calls = builder_.result.calls.size();
    auto found = product_parts(builder_, step);
    if (!found || builder_.result.calls.size() > calls) return "an operand is no matrix of floats";
    parts = std::move(*found);
    return std::nullopt;
  }

  Refusal take_operands() {
    const auto first = cluster_form(builder_.graph, builder_.target, form_.first.calls);
    const auto second = cluster_form(builder_.graph, builder_.target, form_.second.calls);
    const auto halves = [](const auto& form) { return form && size_of(form->call().dtype) == 2; };
    if (!halves(first) || !halves(second)) {
      return "the operands are not 16-bit matrices of known depth, on sm_90";
    }
    if (form_.second.calls.size() != 1) return "the second step has several products";
    const ProductCall &a = form_.first.calls[0], &b = form_.second.calls[0];
    if (a.dtype != b.dtype) return "the products have operands of two types";
    if (!a.batch->is_constant(1) || !b.batch->is_constant(1)) return "the products have a batch";
    form_.rows = a.m;
    form_.depth = a.k->integer;
    form_.inner = a.n->integer;
    form_.width = b.n->integer;
    form_.first_by_rows = first->by_rows;
    form_.second_by_rows = second->by_rows;
    form_.given = first->given && second->given;
    return std::nullopt;
  }

  // Whether the second product takes the first one's result row by row.
  Refusal follow() {
    const ProductCall &a = form_.first.calls[0], &b = form_.second.calls[0];
    const int64_t value = form_.first.epilogue.value;
    const bool reads =
        b.a.value >= 0 && plan_.root(b.a.value) == plan_.root(static_cast<ir::ValueId>(value));
    const bool whole = b.a_offset->is_constant(0) && b.a_column->is_constant(1) && b.k == a.n &&
                       b.m == a.m && (b.a_row == a.n || a.m->is_constant(1));
    const bool typed = builder_.dtype_of(value) == b.dtype;
    if (!reads || !whole || !typed) return "the second product does not take the first one's rows";
    if (builder_.target.order_of(value) != nullptr) {
      return "the first product's result is not row-major";
    }
    return std::nullopt;
  }

  bool reduces(const ProductParts& parts) const {
    const int64_t inner = form_.first.epilogue.value;
    bool found = false;
    visit(parts.epilogue.body, [&](ir::Expr e) {
      const bool read = e->op == ir::ExprOp::Read;
      found |= e->op == ir::ExprOp::Reduce;
      found |= read && (e->integer == parts.epilogue.value || e->integer == inner);
    });
    return found;
  }

  StepBuilder& builder_;
  const fuse::Plan& plan_;
  ChainForm form_;
};

}  // namespace

std::variant<ChainForm, std::string> chain_form(StepBuilder& builder, const fuse::Plan& plan,
                                                const fuse::ProductStep& first,
                                                const fuse::ProductStep& second) {
  return FormBuilder(builder, plan).build(first, second);
}

}  // namespace redfuser::codegen
