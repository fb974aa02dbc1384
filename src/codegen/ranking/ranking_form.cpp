// What a ranking kernel is made from, and what it refuses.
#include "codegen/ranking/ranking_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/rows/row_reads.h"

namespace redfuser::codegen {
namespace {

// Positions are 32-bit numbers, tiles of them too.
constexpr int64_t kLongestRow = int64_t{1} << 30;

ir::Expr renumbered(ir::ExprPool& pool, ir::Expr root, const std::vector<int64_t>& numbers) {
  if (!root) return nullptr;
  return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::State) return nullptr;
    const int64_t number = numbers[static_cast<size_t>(e->integer)];
    return number < 0 ? nullptr : pool.leaf(ir::LeafKind::State, number, e->dtype);
  });
}

bool contracts(ir::Expr root) {
  bool found = false;
  visit(root, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Reduce; });
  return found;
}

}  // namespace

RankingForm ranking_form(ir::ExprPool& pool, const FlatStreaming& form) {
  RankingForm result{form, form, {}};
  FlatStreaming& rest = result.rest;
  rest.accumulators.clear();
  std::vector<int64_t> numbers;
  for (size_t k = 0; k < form.accumulators.size(); ++k) {
    const bool ranked = is_ranked(form.accumulators[k].reduction);
    numbers.push_back(ranked ? -1 : static_cast<int64_t>(rest.accumulators.size()));
    if (ranked) {
      result.ranked.push_back(k);
    } else {
      rest.accumulators.push_back(form.accumulators[k]);
    }
  }
  for (cascade::Accumulator& a : rest.accumulators) {
    a.lift = renumbered(pool, a.lift, numbers);
    a.transport = renumbered(pool, a.transport, numbers);
  }
  for (cascade::Reference& reference : rest.references) {
    reference.value = renumbered(pool, reference.value, numbers);
    reference.ready_after -= static_cast<int>(
        std::count(numbers.begin(), numbers.begin() + reference.ready_after, int64_t{-1}));
  }
  for (ir::Expr& finish : rest.finish) finish = renumbered(pool, finish, numbers);
  return result;
}

std::optional<std::string> ranking_refusal(const StepBuilder& builder, const FlatStreaming& form) {
  bool ranked = false;
  for (const cascade::Accumulator& a : form.accumulators) {
    if (contracts(a.lift)) return "an element of the row is a reduction of its own";
    if (!is_ranked(a.reduction)) continue;
    ranked = true;
    if (a.lift->has_leaf) return "the order depends on another reduction of the row";
  }
  if (!ranked) return "nothing is picked by rank";
  for (const FlatStreaming::Output& output : form.outputs) {
    if (contracts(output.body)) return "an output holds a reduction of its own";
  }
  if (form.length()->is_constant() && form.length()->integer > kLongestRow) {
    return "a row has more elements than 32-bit positions";
  }
  RankingFacts facts;
  facts.lists = 0;
  for (const cascade::Accumulator& a : form.accumulators) {
    if (!is_ranked(a.reduction)) continue;
    ++facts.lists;
    facts.k = std::max(facts.k, a.k);
    facts.key_bytes = std::max<int>(facts.key_bytes, size_of(a.lift->dtype) == 8 ? 8 : 4);
  }
  facts.width = row_width(builder, form);
  const int64_t length = form.length()->is_constant() ? form.length()->integer : -1;
  if (ranking_candidates(builder.target, facts, 1, length).empty()) {
    return fmt::format("a list of {} elements does not fit in shared memory", facts.k);
  }
  return std::nullopt;
}

RankingFacts ranking_facts(StepBuilder& builder, const RankingForm& form) {
  RankingFacts facts;
  facts.width = row_width(builder, form.whole);
  SinglePassConfig config;
  config.width = facts.width;
  KernelText kernel = builder.kernel();
  facts.words = std::max(RowReads(kernel, form.whole, config).group_words(), 1);
  facts.lists = static_cast<int>(form.ranked.size());
  for (size_t i = 0; i < form.ranked.size(); ++i) {
    const cascade::Accumulator& a = form.accumulator(i);
    facts.k = std::max(facts.k, a.k);
    facts.key_bytes = std::max<int>(facts.key_bytes, size_of(a.lift->dtype) == 8 ? 8 : 4);
  }
  facts.maps_back = maps_back(form.whole);
  return facts;
}

}  // namespace redfuser::codegen
