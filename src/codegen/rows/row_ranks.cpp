// What a RowFunctor has for reductions that pick elements by rank.
#include <algorithm>

#include "base/error.h"
#include "codegen/functor/rank_key.h"
#include "codegen/rows/row_functor.h"
#include "codegen/text/function_text.h"

namespace redfuser::codegen {

std::string RowFunctor::ranked_text(ir::Expr read, const std::string& rank,
                                    const std::string& lists) const {
  const int64_t code = -read->integer - 2;
  ir::Expr finish = whole_.finish[static_cast<size_t>(code / 2)];
  RF_CHECK(finish->op == ir::ExprOp::Leaf, "the finish of a ranked stage is no state");
  const auto found =
      std::find(ranked_.begin(), ranked_.end(), static_cast<size_t>(finish->integer));
  const std::string list = fmt::format("List<{}>{{}}", found - ranked_.begin());
  const std::string place = fmt::format("{}place({}, {})", lists, list, rank);
  return code % 2 == 0 ? fmt::format("value({}, row, {})", list, place)
                       : fmt::format("position_of({})", place);
}

std::string RowFunctor::key_function(size_t list) {
  const cascade::Accumulator& a = whole_.accumulators[ranked_[list]];
  Emitter e = emitter();
  bind_rows(e);
  e.open();
  bind_element(e, whole_.streamed());
  bind_reads(e, false);
  e.line(fmt::format("return {};", key_text(e, a)));
  e.line(e.close());
  return function_text(fmt::format("{} key(List<{}>, const Kept& kept, const Words& words, const "
                                   "Row& row, int first, int v) const",
                                   key_type(a), list),
                       e.close());
}

std::string RowFunctor::value_function(size_t list) {
  const cascade::Accumulator& a = whole_.accumulators[ranked_[list]];
  Emitter e = emitter();
  bind_rows(e);
  e.line("if (place == kNowhere) return 0;\nconst long long at = place;");
  e.bind(whole_.cascade.stream, "at");
  e.line(fmt::format("return {};", e.emit(a.lift)));
  return function_text(fmt::format("{} value(List<{}>, const Row& row, unsigned place) const",
                                   value_type(a.lift->dtype), list),
                       e.close());
}

}  // namespace redfuser::codegen
