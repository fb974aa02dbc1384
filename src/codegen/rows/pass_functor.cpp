#include "codegen/rows/pass_functor.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "codegen/functor/state_functor.h"
#include "codegen/text/function_text.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

PassFunctor::PassFunctor(KernelText& kernel, const FlatStreaming& form,
                         const MultiPassConfig& config)
    : pool_(kernel.pool()),
      kernel_(kernel),
      form_(form),
      config_(config),

      passes_(phases_of(form)),
      accesses_(kernel) {
  if (config.chunks > 0) kept_ = shared_values(form, passes_);
  std::vector<ir::Expr> lifts, bodies;
  for (size_t k = 0; k < form.accumulators.size(); ++k) {
    lifts.push_back(form.accumulators[k].lift);
    if (is_ranked(form.accumulators[k].reduction)) lists_.push_back(k);
  }
  for (const FlatStreaming::Output& output : form.outputs) bodies.push_back(output.body);
  row_parts_ =
      invariant_parts(lifts, inner_axes(), PartsWith::ReadsAndCoordinates, Quotients::Plain);
  for (const Phase& pass : passes_) {
    const std::vector<ir::Expr> own(lifts.begin() + static_cast<long>(pass.begin),
                                    lifts.begin() + static_cast<long>(pass.end));
    pass_parts_.emplace_back();
    for (const InvariantPart& part :
         invariant_parts(own, inner_axes(), PartsWith::Anything, Quotients::Plain)) {
      if (part.expr->has_leaf) pass_parts_.back().push_back(part);
    }
  }
  tail_parts_ = invariant_parts(bodies, inner_axes(), PartsWith::Anything, Quotients::Plain);
}

Emitter PassFunctor::emitter() const {
  Emitter result(kernel_);
  result.set_ranked_reads(
      [this](ir::Expr read, const std::string& rank) { return ranked_text(read, rank); });
  return result;
}

std::vector<size_t> PassFunctor::plain(size_t pass) const {
  std::vector<size_t> result;
  for (size_t k = passes_[pass].begin; k < passes_[pass].end; ++k) {
    if (!is_ranked(form_.accumulators[k].reduction)) result.push_back(k);
  }
  return result;
}

std::vector<size_t> PassFunctor::ranked(size_t pass) const {
  std::vector<size_t> result;
  for (size_t k : lists_) {
    if (k >= passes_[pass].begin && k < passes_[pass].end) result.push_back(k);
  }
  return result;
}

size_t PassFunctor::list_number(size_t accumulator) const {
  return static_cast<size_t>(std::find(lists_.begin(), lists_.end(), accumulator) - lists_.begin());
}

PassFunctor::Outputs PassFunctor::outputs(bool mapped) const {
  Outputs result;
  for (const FlatStreaming::Output& output : form_.outputs) {
    if (output.maps_back == mapped) result.push_back(&output);
  }
  return result;
}

// The axes within a row, those of inner reductions included.
std::vector<ir::Expr> PassFunctor::inner_axes() const {
  std::vector<ir::Expr> result = {form_.cascade.stream};
  const auto add = [&](ir::Expr root) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Reduce) result.push_back(e->bound_axis());
    });
  };
  for (const cascade::Accumulator& a : form_.accumulators) add(a.lift);
  for (const FlatStreaming::Output& output : form_.outputs) {
    result.insert(result.end(), output.extra.begin(), output.extra.end());
    add(output.body);
  }
  return result;
}

// The offset of the row's first element if elements are adjacent, else null.
ir::Expr PassFunctor::consecutive(ir::Expr offset) const {
  ir::Expr base = adjacent_from(pool_, offset, form_.cascade.stream);
  if (!base) return nullptr;
  bool of_row = true;
  visit(base, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Axis) return;
    const auto& rows = form_.cascade.rows;
    of_row &= std::find(rows.begin(), rows.end(), e) != rows.end();
  });
  return of_row ? base : nullptr;
}

size_t PassFunctor::base_number(ir::Expr base) {
  const auto found = std::find(bases_.begin(), bases_.end(), base);
  const auto number = static_cast<size_t>(found - bases_.begin());
  if (found == bases_.end()) bases_.push_back(base);
  return number;
}

// The reads of elements that are adjacent in memory, without those of kept values unless these are
// computed.
std::vector<ir::Expr> PassFunctor::group_reads(const std::vector<ir::Expr>& roots,
                                               bool keeping) const {
  std::vector<ir::Expr> result;
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second) return;
    if (!keeping && std::find(kept_.begin(), kept_.end(), e) != kept_.end()) return;
    for (ir::Expr arg : e->args) go(arg);
    if (e->op == ir::ExprOp::Read && e->integer >= 0 && consecutive(e->args[0])) {
      result.push_back(e);
    }
  };
  for (ir::Expr root : roots) go(root);
  return result;
}

size_t PassFunctor::group_number(ir::Expr read) {
  const auto found = std::find(reads_.begin(), reads_.end(), read);
  const auto number = static_cast<size_t>(found - reads_.begin());
  if (found == reads_.end()) reads_.push_back(read);
  return number;
}

std::string PassFunctor::vector_condition() {
  if (accesses_.empty() || config_.width == 1) return "false";
  return accesses_.condition(form_.length(), config_.width);
}

int PassFunctor::slots() const {
  return static_cast<int>(form_.accumulators.size() + lists_.size());
}

std::string PassFunctor::ranked_text(ir::Expr read, const std::string& rank) const {
  const int64_t code = -read->integer - 2;
  ir::Expr finish = form_.finish[static_cast<size_t>(code / 2)];
  RF_CHECK(finish->op == ir::ExprOp::Leaf, "the finish of a ranked stage is no state");
  const std::string entry = fmt::format("s.a{}[{}]", finish->integer, rank);
  return fmt::format("{0}.index < 0 ? 0 : {0}.{1}", entry, code % 2 ? "index" : "value");
}

void PassFunctor::bind_row(Emitter& emitter) const {
  for (size_t i = 0; i < form_.cascade.rows.size(); ++i) {
    emitter.bind(form_.cascade.rows[i], fmt::format("row.c{}", i));
  }
  bind_parts(emitter, row_parts_, "row", "f");
}

void PassFunctor::bind_tail(Emitter& emitter) const {
  bind_parts(emitter, tail_parts_, "tail", "t");
}

void PassFunctor::bind_element(Emitter& emitter, const std::vector<ir::Expr>& roots, bool keeping) {
  emitter.bind(form_.cascade.stream, "at");
  for (ir::Expr read : group_reads(roots, keeping)) {
    emitter.bind(read, fmt::format("group.g{}[v]", group_number(read)));
  }
  if (keeping) return;
  for (size_t i = 0; i < kept_.size(); ++i) {
    emitter.bind(kept_[i], fmt::format("kept.k{}[v]", i));
  }
}

// What a pass has beside its elements.
void PassFunctor::bind_pass(Emitter& emitter, StateText& state, size_t pass) const {
  bind_row(emitter);
  bind_references(state, pass);
  bind_parts(emitter, pass_parts_[pass], "s", fmt::format("p{}_", pass));
}

// Those that the passes before this one have settled.
void PassFunctor::bind_references(StateText& state, size_t pass) const {
  state.bind(ir::LeafKind::Count, 0, kernel_.size(form_.length()), DType::Int64);
  if (pass == 0) return;
  for (size_t r = 0; r < form_.references.size(); ++r) {
    const cascade::Reference& reference = form_.references[r];
    if (static_cast<size_t>(reference.ready_after) > passes_[pass - 1].end) continue;
    bind_reference(state, r);
  }
}

void PassFunctor::bind_reference(StateText& state, size_t reference) const {
  state.bind(ir::LeafKind::NewResult, static_cast<int64_t>(reference),
             fmt::format("s.r{}", reference), form_.references[reference].value->dtype);
}

std::string PassFunctor::functions() {
  std::string text = keep_functions();
  for (size_t pass = 0; pass < passes_.size(); ++pass) text += pass_functions(pass);
  text += finish_function() + write_rows_function();
  if (!outputs(true).empty()) text += map_functions();
  return row_function() + text;
}

std::string PassFunctor::constants() const {
  std::vector<size_t> before = {0};
  std::vector<bool> reduces;
  for (size_t pass = 0; pass < passes_.size(); ++pass) {
    before.push_back(before.back() + ranked(pass).size());
    reduces.push_back(!plain(pass).empty());
  }
  return fmt::format(
      "static constexpr int kWidth = {}, kPasses = {};\n"
      "static constexpr bool kKeeps = {}, kMapsBack = {};\n"
      "static constexpr bool kReduces[] = {{{}}};\nstatic constexpr int kLists[] = {{{}}};\n",
      config_.width, passes_.size(), !kept_.empty(), !outputs(true).empty(),
      fmt::join(reduces, ", "), fmt::join(before, ", "));
}

std::string PassFunctor::members() const {
  std::string row, kept, group, results, values;
  for (size_t i = 0; i < form_.cascade.rows.size(); ++i) row += fmt::format("long long c{};\n", i);
  for (size_t i = 0; i < bases_.size(); ++i) row += fmt::format("long long b{};\n", i);
  const auto line = [](std::string& text, ir::Expr e, const char* letter, size_t number,
                       const char* count) {
    text += fmt::format("{} {}{}{};\n", value_type(e->dtype), letter, number, count);
  };
  row += declare_parts(row_parts_, "f");
  for (size_t i = 0; i < kept_.size(); ++i) line(kept, kept_[i], "k", i, "[kWidth]");
  for (size_t i = 0; i < reads_.size(); ++i) line(group, reads_[i], "g", i, "[kWidth]");
  for (size_t k = 0; k < form_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = form_.accumulators[k];
    const bool list = is_ranked(a.reduction);
    const std::string type = list || is_arg(a.reduction)
                                 ? fmt::format("Ranked<{}>", value_type(a.lift->dtype))
                                 : std::string(value_type(a.dtype));
    results += fmt::format("{} a{}{};\n", type, k,
                           list ? fmt::format("[{}]", std::max<int64_t>(a.k, 1)) : "");
  }
  for (size_t r = 0; r < form_.references.size(); ++r) {
    line(results, form_.references[r].value, "r", r, "");
  }
  for (size_t pass = 0; pass < passes_.size(); ++pass) {
    results += declare_parts(pass_parts_[pass], fmt::format("p{}_", pass));
  }
  const Outputs mapped = outputs(true);
  for (size_t i = 0; i < mapped.size(); ++i) {
    values += fmt::format("{} y{}[kWidth];\n", value_type(kernel_.dtype_of(mapped[i]->value)), i);
  }
  return struct_text("Row", row) + struct_text("Kept", kept) + struct_text("Group", group) +
         struct_text("Results", results) + struct_text("Tail", declare_parts(tail_parts_, "t")) +
         struct_text("Values", values) + kernel_.members();
}

std::string PassFunctor::text() {
  const std::string body = functions();
  return struct_text("Form", constants() + members() + body);
}

}  // namespace redfuser::codegen
