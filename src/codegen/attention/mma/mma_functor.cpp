#include "codegen/attention/mma/mma_functor.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/elementwise/aligned_accesses.h"
#include "codegen/text/function_text.h"

namespace redfuser::codegen {
MmaFunctor::MmaFunctor(StepBuilder& builder, const AttentionSpec& form, int keys,
                       const std::optional<TmaTiles>& boxes)
    : pool_(builder.pool()),
      form_(form),
      rows_(form.rows),
      keys_(keys),
      boxes_(boxes),
      phases_(phases_of(form.rows)),
      products_(builder.target, form),
      visible_(pool_, form, mask_condition(pool_, form)),
      kernel_(builder.kernel()),
      functor_(kernel_, form, products_.rounded(), inner()),
      fold_(kernel_, form, functor_) {
  find_shared();
}

// What the main loop computes for each element.
std::vector<ir::Expr> MmaFunctor::inner() const {
  std::vector<ir::Expr> result = {form_.query->args[0]};
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) result.push_back(form_.lift_of(k));
  if (form_.scale) result.push_back(form_.scale);
  if (boxes_) {
    for (const TmaOperand* operand : {&boxes_->key, &boxes_->value}) {
      result.insert(result.end(), operand->coordinates.begin(), operand->coordinates.end());
    }
  } else {
    result.push_back(form_.key->args[0]);
    result.push_back(form_.value->args[0]);
  }
  return result;
}

void MmaFunctor::find_shared() {
  FlatStreaming scalar = rows_;
  scalar.accumulators[form_.value_accumulator].lift = form_.weight;
  for (ir::Expr e : shared_values(scalar, phases_)) {
    bool scored = false;
    visit(e, [&](ir::Expr x) { scored |= x == form_.contraction; });
    if (scored && (e != form_.contraction || form_.scale)) shared_.push_back(e);
  }
}

size_t MmaFunctor::value_phase() const {
  size_t phase = 0;
  while (phases_[phase].end <= form_.value_accumulator) ++phase;
  return phase;
}

std::string MmaFunctor::lines() {
  return kernel_.size(form_.row ? form_.row->extent() : pool_.integer(1));
}
std::string MmaFunctor::length() { return kernel_.size(rows_.length()); }

std::string MmaFunctor::operand(const MmaOperand& operand, ir::Expr read, ir::Expr element,
                                int unit) {
  const std::string buffer = kernel_.buffer(read->integer);
  std::string vector = "false";
  if (ir::Expr base = adjacent_from(pool_, read->args[0], element)) {
    AlignedAccesses accesses(kernel_);
    accesses.add(buffer, base);
    vector = accesses.condition(element->extent(), unit > 0 ? unit : 16 / operand.element);
  }
  return fmt::format("operand({}, {})", buffer, vector);
}

std::string MmaFunctor::operands(int query_unit) {
  const std::string query = operand(products_.query, form_.query, form_.depth, query_unit);
  std::string key, value;
  if (boxes_) {
    const auto boxes = [&](const MmaOperand& operand, const TmaOperand& tensor, ir::Expr read) {
      const TmaTile tile{keys_, operand.columns};
      return fmt::format("boxes<{}>({})", storage_type(read->dtype),
                         kernel_.view(tile.view(tensor)));
    };
    key = boxes(products_.key, boxes_->key, form_.key);
    value = boxes(products_.value, boxes_->value, form_.value);
  } else {
    key = operand(products_.key, form_.key, form_.depth, 0);
    value = operand(products_.value, form_.value, form_.column, 0);
  }
  return fmt::format("{}, {}, {}", query, key, value);
}

std::string MmaFunctor::config(int halves) const {
  return fmt::format(
      "static constexpr int kDepth = {}, kColumns = {}, kKeys = {}, kHalves = {};\n"
      "static constexpr Products kScores = Products::{}, kValues = Products::{};\n",
      products_.key.extent, products_.value.extent, keys_, halves, products_.scores(),
      products_.values());
}

std::string MmaFunctor::offset_function(const char* name, const char* parameters, ir::Expr read,
                                        ir::Expr element) {
  Emitter e = functor_.emitter();
  functor_.bind_row(e);
  e.bind(rows_.cascade.stream, "at");
  e.bind(element, "e");
  e.nest({read->args[0]});
  e.line(fmt::format("return {};", e.emit_whole(read->args[0], DType::Int64)));
  return function_text(fmt::format("long long {}(const Row& row, {}) const", name, parameters),
                       e.close());
}

std::string MmaFunctor::text(bool merges) {
  std::string text = fold_.constants(
      phases_.size(), fmt::format(", kValuePhase = {}, kKept = {}", value_phase(), shared_.size()));
  text += offset_function("query", "long long e", form_.query, form_.depth);
  if (boxes_) {
    text += fold_.copy("copy_key", boxes_->key) + fold_.copy("copy_value", boxes_->value);
  } else {
    text += offset_function("key", "long long at, long long e", form_.key, form_.depth);
    text += offset_function("value", "long long at, long long e", form_.value, form_.column);
  }
  text += fold_.visited(visible_, keys_) + fold_.start();
  for (size_t phase = 0; phase < phases_.size(); ++phase) {
    text += lift_function(phase) + fold_.settle(phase, phases_[phase], true);
  }
  return functor_.text(text + fold_.same(), merges);
}

}  // namespace redfuser::codegen
