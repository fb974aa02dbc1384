#include "codegen/functor/leaf_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace redfuser::codegen {

void LeafNames::add(ir::Expr root) {
  if (!root) return;
  visit(root, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Leaf) return;
    if (std::find(leaves_.begin(), leaves_.end(), e) == leaves_.end()) leaves_.push_back(e);
  });
}

void LeafNames::add(const cascade::Accumulator& accumulator) {
  add(accumulator.lift);
  add(accumulator.transport);
}

void LeafNames::add(const FlatStreaming& form) {
  for (const cascade::Accumulator& accumulator : form.accumulators) add(accumulator);
  for (const cascade::Reference& reference : form.references) add(reference.value);
  for (ir::Expr finish : form.finish) add(finish);
  for (const auto& output : form.outputs) add(output.body);
}

void LeafNames::bind(ir::LeafKind kind, int64_t number, const std::string& text,
                     DType dtype) const {
  for (ir::Expr leaf : leaves_) {
    if (leaf->leaf_kind != kind || (kind != ir::LeafKind::Count && leaf->integer != number))
      continue;
    const std::string wanted(value_type(leaf->dtype));
    emitter_.bind(leaf, wanted == value_type(dtype)
                            ? text
                            : fmt::format("static_cast<{}>({})", wanted, text));
  }
}

}  // namespace redfuser::codegen
