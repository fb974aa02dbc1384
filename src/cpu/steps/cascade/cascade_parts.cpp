#include "cpu/steps/cascade/cascade_parts.h"

#include <algorithm>
#include <functional>
#include <map>

#include "cpu/tile/specialize.h"
#include "ops/reindex.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kShortest = 4096;  // of rows that are divided
constexpr int64_t kShortestPart = 16;
constexpr int64_t kParts[] = {
    1 << 14, 1 << 16};  // lengths of parts where expressions do not divide the streamed axis

const cascade::Streaming& streaming_of(const StepForm& form) {
  return std::get<fuse::CascadeStep>(form.kind).streaming;
}

std::string refusal_of(const StepForm& form) {
  if (form.growing != nullptr) return "parts are planned for fixed sizes";
  const cascade::Streaming& s = streaming_of(form);
  if (!s.references.empty()) return "states depend on running results";
  for (const cascade::Accumulator& fold : s.accumulators) {
    if (fold.transport != nullptr || fold.lift->has_leaf) return "states depend on running results";
    if (picks_element(fold.reduction)) return "the best elements of a row are found together";
    if (!fold.columns.empty()) return "a state has columns";
  }
  return "";
}

// The expression with its reads of all elements of a value, in order along the streamed axis, as
// reads at that axis: of `flat(value)`, which has the elements in one dimension.
ir::Expr with_flat_reads(const StepForm& form, ir::ExprPool& pool, ir::Expr e, ir::Expr stream,
                         const std::function<ir::ValueId(ir::ValueId)>& flat) {
  return pool.rewrite(e, [&](ir::Expr read) -> ir::Expr {
    if (read->op != ir::ExprOp::Read || read->integer < 0 || read->args.size() < 2) return nullptr;
    const auto value = static_cast<ir::ValueId>(read->integer);
    std::vector<ir::Expr> sizes;
    for (const int64_t size : memory_of(form, value)) sizes.push_back(pool.integer(size));
    const ir::Expr length[] = {stream->extent()}, index[] = {stream};
    if (!ops::same_order(pool, sizes, read->args, length, index)) return nullptr;
    return pool.read(flat(value), read->dtype, {stream});
  });
}

// A copy of the cascade with the streamed axis l as part · length + position.
class Divider {
 public:
  Divider(const StepForm& form, CascadeParts& parts)
      : form_(form), pool_(parts.pool), parts_(parts), specializer_(parts.pool, form.symbols) {
    const cascade::Streaming& s = streaming_of(form);
    rows_ = specializer_.copy_axes(s.cascade.rows);
    stream_ = specializer_.copy(s.cascade.stream);
  }

  bool divide(PartsForm form) {
    const int64_t length = form.length;
    if (form.stored) store_lift();
    const int64_t count = extent_of(stream_) / length, rest = extent_of(stream_) % length;
    part_ = pool_.axis("part", pool_.integer(count + (rest > 0 ? 1 : 0)));
    std::vector<ir::Expr> axes = rows_;
    axes.push_back(part_);
    for (const cascade::Accumulator& fold : streaming_of(form_).accumulators) {
      states_.push_back(add_inner(axes, fold.dtype));
    }
    const ir::Expr whole = pool_.axis("part", pool_.integer(count));
    add_states(whole, length, pool_.mul(whole, pool_.integer(length)));
    if (rest > 0) add_states(pool_.integer(count), rest, pool_.integer(count * length));
    add_results();
    return add_outputs();
  }

 private:
  ir::ValueId add_inner(InnerValue value) {
    parts_.inner.push_back(std::move(value));
    return static_cast<ir::ValueId>(form_.graph.values.size() + parts_.inner.size() - 1);
  }
  ir::ValueId add_inner(const std::vector<ir::Expr>& axes, DType dtype) {
    InnerValue value{{}, dtype};
    for (ir::Expr axis : axes) value.dims.push_back(extent_of(axis));
    return add_inner(std::move(value));
  }

  // What all states fold, as a value of its own: it is read for them and for the outputs.
  void store_lift() {
    lift_ = specializer_.copy(streaming_of(form_).accumulators[0].lift);
    stored_ = add_inner({{extent_of(stream_)}, lift_->dtype});
    fuse::MapStep step;
    step.axes = {stream_};
    step.outputs.push_back({stored_, lift_});
    parts_.steps.push_back(std::move(step));
  }
  ir::Expr with_stored(ir::Expr e) {
    if (lift_ == nullptr) return e;
    return pool_.substitute(e, {{lift_, pool_.read(stored_, lift_->dtype, {stream_})}});
  }

  ir::Expr lift_of(const cascade::Accumulator& fold) {
    if (lift_ != nullptr) return with_stored(specializer_.copy(fold.lift));
    return with_flat_reads(
        form_, pool_, specializer_.copy(fold.lift), stream_, [&](ir::ValueId value) {
          const auto [entry, added] = flat_.try_emplace(value);
          if (added) {
            entry->second = add_inner({{extent_of(stream_)}, dtype_of(form_, value), value});
          }
          return entry->second;
        });
  }

  // Each accumulator as a stage of its own whose result is its state.
  static void add_fold(cascade::Streaming& to, const cascade::Accumulator& fold, ir::Expr lift,
                       ir::Expr state) {
    cascade::Accumulator plain;
    plain.reduction = fold.reduction;
    plain.stage = static_cast<int>(to.accumulators.size());
    plain.dtype = fold.dtype;
    plain.lift = lift;
    to.accumulators.push_back(plain);
    cascade::Stage stage;
    stage.reduction = fold.reduction;
    stage.body = lift;
    stage.dtype = fold.dtype;
    to.cascade.stages.push_back(stage);
    to.finish.push_back(state);
  }

  // The states of parts number `part`, an axis or the last one, of `length` elements from `begin`
  // on.
  void add_states(ir::Expr part, int64_t length, ir::Expr begin) {
    const cascade::Streaming& s = streaming_of(form_);
    fuse::CascadeStep step;
    cascade::Streaming& to = step.streaming;
    const ir::Expr position = pool_.axis("l", pool_.integer(length));
    to.cascade.rows = rows_;
    if (part->op == ir::ExprOp::Axis) to.cascade.rows.push_back(part);
    to.cascade.stream = position;
    std::vector<ir::Expr> axes = rows_;
    axes.push_back(part);
    for (size_t k = 0; k < s.accumulators.size(); ++k) {
      const cascade::Accumulator& fold = s.accumulators[k];
      const auto number = static_cast<int64_t>(k);
      const ir::Expr lift =
          pool_.substitute(lift_of(fold), {{stream_, pool_.add(begin, position)}});
      add_fold(to, fold, lift, pool_.leaf(ir::LeafKind::State, number, fold.dtype));
      const ir::Expr result = pool_.leaf(ir::LeafKind::Result, number, fold.dtype);
      to.cascade.outputs.push_back({states_[k], result, axes, false});
    }
    parts_.steps.push_back(std::move(step));
  }

  void add_results() {
    const cascade::Streaming& s = streaming_of(form_);
    fuse::CascadeStep step;
    cascade::Streaming& to = step.streaming;
    to.cascade.rows = rows_;
    to.cascade.stream = part_;
    std::vector<ir::Expr> axes = rows_;
    axes.push_back(part_);
    for (size_t k = 0; k < s.accumulators.size(); ++k) {
      const cascade::Accumulator& fold = s.accumulators[k];
      cascade::Accumulator& merged = to.accumulators.emplace_back(fold);
      merged.lift = pool_.read(states_[k], fold.dtype, axes);
    }
    const int64_t length = extent_of(stream_);
    for (size_t i = 0; i < s.cascade.stages.size(); ++i) {
      cascade::Stage& stage = to.cascade.stages.emplace_back(s.cascade.stages[i]);
      stage.body = specializer_.copy(stage.body);
      to.finish.push_back(
          pool_.rewrite(specializer_.copy(s.finish[i]), [&](ir::Expr e) -> ir::Expr {
            const bool counts = e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Count;
            return counts ? pool_.number_int(length, e->dtype) : nullptr;
          }));
      results_.push_back(add_inner(rows_, stage.dtype));
      const ir::Expr result =
          pool_.leaf(ir::LeafKind::Result, static_cast<int64_t>(i), stage.dtype);
      to.cascade.outputs.push_back({results_.back(), result, rows_, false});
    }
    for (const cascade::CascadeOutput& output : s.cascade.outputs) {
      if (output.maps_back) continue;
      cascade::CascadeOutput& copy = to.cascade.outputs.emplace_back(output);
      copy.body = specializer_.copy(copy.body);
      for (ir::Expr& axis : copy.axes) axis = specializer_.copy(axis);
    }
    parts_.steps.push_back(std::move(step));
  }

  // Outputs of the same dimensions are one step.
  bool add_outputs() {
    std::map<Dims, fuse::MapStep> steps;
    for (const cascade::CascadeOutput& output : streaming_of(form_).cascade.outputs) {
      if (!output.maps_back) continue;
      const Dims dims = memory_of(form_, output.value);
      fuse::MapStep& step = steps[dims];
      for (size_t i = step.axes.size(); i < dims.size(); ++i) {
        step.axes.push_back(dims[i] == 1 ? pool_.integer(0)
                                         : pool_.axis("a", pool_.integer(dims[i])));
      }
      const ir::Expr body = mapped_body(output, step.axes);
      if (body == nullptr) return false;
      step.outputs.push_back({output.value, body});
    }
    for (auto& [dims, step] : steps) parts_.steps.push_back(std::move(step));
    return true;
  }

  // The element at `axes`; null where they are not the rows and the streamed axis in order.
  ir::Expr mapped_body(const cascade::CascadeOutput& output, const std::vector<ir::Expr>& axes) {
    std::vector<std::pair<ir::Expr, ir::Expr>> map;
    std::vector<ir::Expr> indices;
    ir::Expr whole = pool_.integer(0);
    for (size_t i = 0; i < axes.size(); ++i) {
      indices.push_back(specializer_.copy(output.axes[i]));
      if (axes[i]->op != ir::ExprOp::Axis) continue;
      if (indices[i]->depends_on(stream_)) {
        whole = pool_.add(pool_.mul(whole, pool_.integer(extent_of(axes[i]))), axes[i]);
      } else if (indices[i]->op == ir::ExprOp::Axis) {
        map.push_back({indices[i], axes[i]});
      }
    }
    map.push_back({stream_, whole});
    for (size_t i = 0; i < axes.size(); ++i) {
      if (pool_.substitute(indices[i], map) != axes[i]) return nullptr;
    }
    const ir::Expr body =
        pool_.rewrite(with_stored(specializer_.copy(output.body)), [&](ir::Expr e) -> ir::Expr {
          if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Result) return nullptr;
          return pool_.read(results_[static_cast<size_t>(e->integer)], e->dtype, rows_);
        });
    return pool_.substitute(body, map);
  }

  const StepForm& form_;
  ir::ExprPool& pool_;
  CascadeParts& parts_;
  Specializer specializer_;
  std::vector<ir::Expr> rows_;
  ir::Expr stream_ = nullptr, part_ = nullptr;
  std::vector<ir::ValueId> states_, results_;
  ir::Expr lift_ = nullptr;  // where it is stored
  ir::ValueId stored_ = ir::kAbsent;
  std::map<ir::ValueId, ir::ValueId> flat_;  // of values that are read in order
};

}  // namespace

std::variant<std::vector<PartsForm>, std::string> part_forms(const StepForm& form) {
  if (std::string refusal = refusal_of(form); !refusal.empty()) return refusal;
  ir::ExprPool pool;
  Specializer specializer(pool, form.symbols);
  const cascade::Streaming& s = streaming_of(form);
  const ir::Expr stream = specializer.copy(s.cascade.stream);
  if (stream->op != ir::ExprOp::Axis || extent_of(stream) < kShortest) {
    return "rows are short";
  }
  const std::vector<ir::Expr> rows = specializer.copy_axes(s.cascade.rows);
  if (extent_of(rows) * kShortest > extent_of(stream)) {
    return "rows are many";
  }
  std::vector<ir::Expr> lifts;
  for (const cascade::Accumulator& fold : s.accumulators) {
    lifts.push_back(with_flat_reads(form, pool, specializer.copy(fold.lift), stream,
                                    [](ir::ValueId value) { return value; }));
  }
  std::vector<ir::Expr*> expressions;
  for (ir::Expr& lift : lifts) expressions.push_back(&lift);
  std::vector<int64_t> lengths = divisors_of(stream, expressions);
  const size_t divided = lengths.size();
  std::erase_if(lengths, [](int64_t length) { return length < kShortestPart; });
  for (const int64_t part : kParts) {
    if (divided == 0 && part < extent_of(stream)) lengths.push_back(part);
  }
  std::vector<PartsForm> forms;
  for (const int64_t length : lengths) forms.push_back({length, false});
  // One row of what all states fold, which no other step has in memory.
  const bool same =
      std::all_of(lifts.begin(), lifts.end(), [&](ir::Expr e) { return e == lifts[0]; });
  if (same && lifts[0]->op != ir::ExprOp::Read && extent_of(rows) == 1) {
    const int64_t half = (extent_of(stream) + 1) / 2;
    for (const int64_t part : kParts) {
      if (part == kParts[0] || half > kParts[0]) forms.push_back({std::min(part, half), true});
    }
  }
  if (forms.empty()) return "a row is one part";
  return forms;
}

std::shared_ptr<const CascadeParts> cascade_parts(const StepForm& form, PartsForm of) {
  auto parts = std::make_shared<CascadeParts>();
  return Divider(form, *parts).divide(of) ? parts : nullptr;
}

}  // namespace redfuser::cpu
