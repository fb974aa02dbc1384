#include "fuse/cascade_candidate.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ir/contraction.h"
#include "ir/depth.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::fuse {
namespace {

bool used_outside(const NodeFacts& facts, const std::set<ir::NodeId>& owned, ir::ValueId value) {
  if (facts.is_output(value)) return true;
  const auto& readers = facts.consumers(value);
  return std::any_of(readers.begin(), readers.end(),
                     [&](ir::NodeId reader) { return owned.count(reader) == 0; });
}

// Reductions over at most so many elements are unrolled: the coordinates of a point, the channels
// of a pixel.
constexpr int64_t kWrittenOut = 4;
constexpr int64_t kMaxWritten = 256;  // elements of nested short axes

bool is_short(ir::Expr reduce) {
  return reduce->extent()->is_constant() && reduce->extent()->integer <= kWrittenOut;
}

std::optional<ir::ExprOp> written_out(ir::Reduction reduction) {
  switch (reduction) {
    case ir::Reduction::Sum:
      return ir::ExprOp::Add;
    case ir::Reduction::Prod:
      return ir::ExprOp::Mul;
    case ir::Reduction::Max:
      return ir::ExprOp::Max;
    case ir::Reduction::Min:
      return ir::ExprOp::Min;
    default:
      return std::nullopt;
  }
}

bool has_long_reduction(const std::vector<cascade::LoweredOutput>& outputs) {
  bool found = false;
  for (const cascade::LoweredOutput& output : outputs) {
    visit(output.body, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Reduce && !is_short(e); });
  }
  return found;
}

// The number of copies of one element after unrolling the short reductions of an expression;
// saturates.
int64_t elements_written(ir::Expr body) {
  std::unordered_map<ir::Expr, int64_t> elements;
  visit(body, [&](ir::Expr e) {
    int64_t count = 1;
    for (ir::Expr arg : e->args) {
      const auto below = elements.find(arg);
      if (below != elements.end()) count = std::max(count, below->second);
    }
    if (e->op == ir::ExprOp::Reduce && is_short(e)) {
      count *= std::max<int64_t>(e->extent()->integer, 1);
    }
    elements[e] = std::min(count, kMaxWritten + 1);
  });
  return elements[body];
}

// Unrolls reductions over short axes if there are long ones, so that the long ones are the stages
// of a cascade. Contractions stay: they are computed tile by tile.
ir::Expr write_out_short(ir::ExprPool& pool, ir::Expr body) {
  return pool.rewrite(body, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Reduce || !is_short(e) || e->extent()->integer == 0) return nullptr;
    const auto op = written_out(e->reduction);
    if (!op || as_contraction(pool, e) || elements_written(e) > kMaxWritten) return nullptr;
    ir::Expr result = nullptr;
    for (int64_t i = 0; i < e->extent()->integer; ++i) {
      ir::Expr element =
          pool.cast(e->dtype, pool.substitute(e->body(), {{e->bound_axis(), pool.integer(i)}}));
      element = write_out_short(pool, element);
      result = result ? pool.make(*op, {result, element}) : element;
    }
    return result;
  });
}

std::variant<CascadeCandidate, CandidateRefusal> formed(
    const NodeFacts& facts, ops::LoweringMemo& memo, const std::set<ir::NodeId>& owned,
    const std::set<ir::NodeId>& shared, const std::set<ir::ValueId>& pinned, cascade::Axes axes) {
  const ir::Graph& graph = facts.graph();
  ir::ExprPool& pool = *graph.pool;
  const auto inside = [&](ir::ValueId value) {
    const ir::NodeId producer = facts.producer(value);
    return owned.count(producer) > 0 || shared.count(producer) > 0;
  };
  ops::Lowering lowering(graph, inside, &memo);
  std::vector<cascade::LoweredOutput> outputs;
  for (ir::NodeId node : owned) {
    for (ir::ValueId output : graph.nodes[static_cast<size_t>(node)].outputs) {
      if (output == ir::kAbsent) continue;
      if (!pinned.count(output) && !used_outside(facts, owned, output)) continue;
      std::vector<ir::Expr> index = ops::shared_index(graph, output);
      ir::Expr body = lowering.element(output, index);
      if (!expr_extent(body).fits()) return CandidateRefusal{"its expression is too large", false};
      outputs.push_back({output, body, std::move(index)});
    }
  }
  std::vector<cascade::LoweredOutput> written = outputs;
  if (has_long_reduction(outputs)) {
    for (cascade::LoweredOutput& output : written) output.body = write_out_short(pool, output.body);
  }
  auto extracted = extract(pool, written, axes);
  // A short axis may be one of several that are streamed as one: those of a batch of few images.
  if (std::holds_alternative<std::string>(extracted)) {
    auto whole = extract(pool, outputs, axes);
    if (!std::holds_alternative<std::string>(whole)) extracted = std::move(whole);
  }
  if (auto* reason = std::get_if<std::string>(&extracted)) return CandidateRefusal{*reason, false};
  CascadeCandidate shape{std::get<cascade::Extraction>(std::move(extracted)), {}};
  auto derived = derive(pool, shape.extraction.cascade, axes == cascade::Axes::Own);
  if (auto* refusal = std::get_if<cascade::StageRefusal>(&derived)) {
    return CandidateRefusal{refusal->refusal.reason, true};
  }
  shape.derivation = std::get<cascade::Derivation>(std::move(derived));
  return shape;
}

}  // namespace

std::variant<CascadeCandidate, CandidateRefusal> try_cascade(
    const NodeFacts& facts, ops::LoweringMemo& memo, const std::set<ir::NodeId>& owned,
    const std::set<ir::NodeId>& shared, const std::set<ir::ValueId>& pinned, cascade::Axes axes) {
  if (owned.size() + shared.size() > kMaxRegionNodes) {
    return CandidateRefusal{fmt::format("a region has at most {} nodes", kMaxRegionNodes), false};
  }
  try {
    return formed(facts, memo, owned, shared, pinned, axes);
  } catch (const ir::ExprTooDeep& deep) {
    return CandidateRefusal{deep.what(), false};
  }
}

std::string class_of(const CascadeCandidate& shape) {
  const bool producer = shape.extraction.has_producer, columns = shape.extraction.has_columns;
  const bool cascade = shape.extraction.cascade.stages.size() > 1;
  if (producer && columns) return cascade ? "attention" : "chain";
  if (columns) return "product";
  return producer ? "other" : "row";
}

bool is_cascade(const CascadeCandidate& shape) {
  const auto& stages = shape.extraction.cascade.stages;
  return stages.size() > 1 || shape.extraction.maps_back || shape.extraction.has_producer ||
         is_ranked(stages[0].reduction);
}

std::set<ir::ValueId> values_read(const cascade::Cascade& cascade) {
  std::set<ir::ValueId> values;
  auto collect = [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Read && e->integer >= 0)
      values.insert(static_cast<ir::ValueId>(e->integer));
  };
  for (const cascade::Stage& stage : cascade.stages) visit(stage.body, collect);
  for (const cascade::CascadeOutput& output : cascade.outputs) visit(output.body, collect);
  return values;
}

}  // namespace redfuser::fuse
