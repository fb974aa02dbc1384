#include "cascade/certify/simulate.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "cascade/certify/tape.h"
#include "ir/evaluate.h"

namespace redfuser::cascade {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A reduction's partial value: one number, or the kept (value, index) pairs.
struct Partial {
  double value = 0;
  std::vector<std::pair<double, double>> kept;
};

Partial identity(ir::Reduction reduction) {
  switch (reduction) {
    case ir::Reduction::Sum:
      return {0, {}};
    case ir::Reduction::Prod:
      return {1, {}};
    case ir::Reduction::Max:
      return {-kInfinity, {}};
    case ir::Reduction::Min:
      return {kInfinity, {}};
    default:
      return {};
  }
}

// Of a reduction that combines all elements.
double combine(ir::Reduction reduction, double a, double b) {
  if (reduction == ir::Reduction::Sum) return a + b;
  if (reduction == ir::Reduction::Prod) return a * b;
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  return wants_large(reduction) ? std::max(a, b) : std::min(a, b);
}

Partial combine(ir::Reduction reduction, int64_t k, const Partial& a, const Partial& b) {
  if (!picks_element(reduction)) return {combine(reduction, a.value, b.value), {}};
  Partial result = a;
  result.kept.insert(result.kept.end(), b.kept.begin(), b.kept.end());
  const bool large = wants_large(reduction);
  std::stable_sort(result.kept.begin(), result.kept.end(), [&](auto& x, auto& y) {
    if (std::isnan(x.first) != std::isnan(y.first)) return std::isnan(x.first);
    return large ? x.first > y.first : x.first < y.first;
  });
  const auto limit = static_cast<size_t>(is_arg(reduction) ? 1 : k);
  if (result.kept.size() > limit) result.kept.resize(limit);
  return result;
}

// Combines the value of the element at `index` into `total`.
void add_element(ir::Reduction reduction, int64_t k, Partial& total, double value, int64_t index) {
  if (picks_element(reduction)) {
    total = combine(reduction, k, total, {0, {{value, static_cast<double>(index)}}});
  } else {
    total.value = combine(reduction, total.value, value);
  }
}

// The number of a State or Result leaf.
double scalar(ir::Reduction reduction, const Partial& partial) {
  if (is_arg(reduction)) return partial.kept.empty() ? 0 : partial.kept[0].second;
  return partial.value;
}

std::vector<double> flattened(ir::Reduction reduction, const Partial& partial) {
  if (!is_ranked(reduction)) return {scalar(reduction, partial)};
  std::vector<double> result;
  for (auto& [value, index] : partial.kept) result.push_back(value);
  for (auto& [value, index] : partial.kept) result.push_back(index);
  return result;
}

// Evaluates at streamed positions and a column point, with a supplier of leaves.
void at(Tape& tape, const Row& row, const AxisRange& range, const std::vector<ir::Expr>& columns,
        const std::vector<int64_t>& point, const ir::Environment& leaves, double* results) {
  auto environment = [&](ir::Expr leaf) -> double {
    if (leaf->op == ir::ExprOp::Leaf || (leaf->op == ir::ExprOp::Read && leaf->integer < 0)) {
      return leaves(leaf);
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      if (leaf == columns[i]) return static_cast<double>(point[i]);
    }
    return row.values(leaf);
  };
  tape.run(std::ref(environment), range, results);  // no allocation per call
}

// The same at the first position.
double at(Tape& tape, const Row& row, ir::Expr stream, const std::vector<ir::Expr>& columns,
          const std::vector<int64_t>& point, const ir::Environment& leaves) {
  double result = 0;
  at(tape, row, {stream, 0, 1}, columns, point, leaves, &result);
  return result;
}

using Points = std::vector<std::vector<int64_t>>;

// The column points at which a stage is evaluated; one empty point without columns.
Points points_of(const std::vector<ir::Expr>& columns, const Row& row) {
  if (columns.empty()) return {{}};
  Points points;
  for (const auto& point : row.columns) {
    points.push_back(point);
    points.back().resize(columns.size(), 0);
  }
  return points;
}

// A ranked read: -(2·stage + 2) is a value, -(2·stage + 3) an index; its argument is the rank.
double ranked_read(ir::Expr read, const std::vector<Partial>& by_stage) {
  const int64_t code = -read->integer - 2;
  const auto rank = static_cast<size_t>(read->args[0]->integer);
  const auto& kept = by_stage[static_cast<size_t>(code / 2)].kept;
  if (rank >= kept.size()) return 0;
  return code % 2 ? kept[rank].second : kept[rank].first;
}

// Outputs from final results; `results(stage, point)`.
using Results = std::function<double(size_t stage, size_t point)>;

// One element of every output.
std::vector<Tape> tapes_of(const std::vector<CascadeOutput>& outputs) {
  std::vector<Tape> tapes;
  for (const CascadeOutput& output : outputs) tapes.emplace_back(output.body);
  return tapes;
}

void write_outputs(const std::vector<CascadeOutput>& outputs, std::vector<Tape>& tapes,
                   ir::Expr stream, const std::vector<Stage>& stages, const Row& row,
                   const Results& results, const std::vector<Partial>& ranked, RowResult& out) {
  std::vector<ir::Expr> columns;
  for (const Stage& stage : stages) {
    if (!stage.columns.empty()) columns = stage.columns;
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const CascadeOutput& output = outputs[o];
    const int64_t positions = output.maps_back ? row.length : 1;
    const Points points = output.maps_back ? Points{{}} : points_of(columns, row);
    // An output has several positions or several points.
    std::vector<double>& values =
        out.outputs.emplace_back(static_cast<size_t>(positions) * points.size());
    for (size_t p = 0; p < points.size(); ++p) {
      auto leaves = [&](ir::Expr leaf) -> double {
        if (leaf->op == ir::ExprOp::Read) return ranked_read(leaf, ranked);
        return results(static_cast<size_t>(leaf->integer), p);
      };
      at(tapes[o], row, {stream, 0, positions}, columns, points[p], std::ref(leaves),
         values.data() + p);
    }
  }
}

}  // namespace

struct UnfusedSimulator::Impl {
  explicit Impl(const Cascade& cascade) : cascade(cascade), outputs(tapes_of(cascade.outputs)) {
    for (const Stage& stage : cascade.stages) bodies.emplace_back(stage.body);
  }
  const Cascade cascade;
  std::vector<Tape> bodies, outputs;
};

UnfusedSimulator::UnfusedSimulator(const Cascade& cascade)
    : impl_(std::make_unique<Impl>(cascade)) {}
UnfusedSimulator::~UnfusedSimulator() = default;

RowResult UnfusedSimulator::run(const Row& row) {
  RowResult out;
  const Cascade& cascade = impl_->cascade;
  std::vector<std::vector<Partial>> results;
  auto result_of = [&](size_t stage, size_t point) {
    const auto& list = results[stage];
    return scalar(cascade.stages[stage].reduction, list[std::min(point, list.size() - 1)]);
  };
  for (size_t s = 0; s < cascade.stages.size(); ++s) {
    const Stage& stage = cascade.stages[s];
    std::vector<Partial> by_point;
    const auto points = points_of(stage.columns, row);
    for (size_t p = 0; p < points.size(); ++p) {
      Partial total = identity(stage.reduction);
      auto leaves = [&](ir::Expr leaf) { return result_of(static_cast<size_t>(leaf->integer), p); };
      std::vector<double> values(static_cast<size_t>(row.length));
      at(impl_->bodies[s], row, {cascade.stream, 0, row.length}, stage.columns, points[p],
         std::ref(leaves), values.data());
      for (int64_t l = 0; l < row.length; ++l) {
        add_element(stage.reduction, stage.k, total, values[static_cast<size_t>(l)], l);
      }
      by_point.push_back(total);
    }
    results.push_back(by_point);
    std::vector<double>& flat = out.results.emplace_back();
    for (const Partial& partial : results.back()) {
      for (double value : flattened(stage.reduction, partial)) flat.push_back(value);
    }
  }
  std::vector<Partial> ranked;
  for (auto& list : results) ranked.push_back(list[0]);
  write_outputs(cascade.outputs, impl_->outputs, cascade.stream, cascade.stages, row, result_of,
                ranked, out);
  return out;
}

namespace {

// One state: partials per accumulator and column point, with the number of elements folded.
struct State {
  std::vector<std::vector<Partial>> partials;
  int64_t count = 0;
};

struct StreamingTapes {
  explicit StreamingTapes(const Streaming& streaming)
      : outputs(tapes_of(streaming.cascade.outputs)) {
    for (const Accumulator& a : streaming.accumulators) {
      lifts.emplace_back(a.lift);
      transports.emplace_back();
      if (a.transport) transports.back().emplace(a.transport);
    }
    for (const Reference& reference : streaming.references)
      references.emplace_back(reference.value);
    for (ir::Expr finish : streaming.finish) finishes.emplace_back(finish);
  }
  std::vector<Tape> lifts, references, finishes, outputs;
  std::vector<std::optional<Tape>> transports;
};

class TileContext {
 public:
  // `hidden`: null to fold all elements.
  TileContext(const Streaming& streaming, StreamingTapes& tapes, const Row& row, Tape* hidden)
      : streaming_(streaming), tapes_(tapes), row_(row), hidden_(hidden) {
    for (const Accumulator& a : streaming.accumulators) {
      accumulator_points_.push_back(points_of(a.columns, row));
      empty_.partials.emplace_back(accumulator_points_.back().size(), identity(a.reduction));
    }
    for (const Stage& stage : streaming.cascade.stages) {
      stage_points_.push_back(points_of(stage.columns, row));
    }
  }

  const State& empty() const { return empty_; }
  int64_t left_out() const { return left_out_; }

  void fold(State& next, int64_t begin, int64_t end) const {
    begin_step(next);
    const State& old = old_;
    next.count += end - begin;
    for (size_t k = 0; k < streaming_.accumulators.size(); ++k) {
      updated_ = static_cast<int>(k);
      const Accumulator& a = streaming_.accumulators[k];
      const Points& points = accumulator_points_[k];
      for (size_t p = 0; p < points.size(); ++p) {
        Partial tile = identity(a.reduction);
        auto leaves = [&](ir::Expr leaf) { return reference(leaf, next, old, p); };
        const AxisRange range{streaming_.cascade.stream, begin, end};
        lifted_.resize(static_cast<size_t>(end - begin));
        at(tapes_.lifts[k], row_, range, a.columns, points[p], std::ref(leaves), lifted_.data());
        find_hidden(k, points[p], range);
        for (int64_t l = begin; l < end; ++l) {
          const auto i = static_cast<size_t>(l - begin);
          if (hidden_ != nullptr && hides_[i] != 0) continue;
          add_element(a.reduction, a.k, tile, lifted_[i], l);
        }
        next.partials[k][p] = combine(a.reduction, a.k, transported(k, p, old, next), tile);
      }
    }
  }

  // Merges `t` into `next`.
  void merge(State& next, const State& t) const {
    begin_step(next);
    const State& s = old_;
    next = empty();
    next.count = s.count + t.count;
    for (size_t k = 0; k < streaming_.accumulators.size(); ++k) {
      updated_ = static_cast<int>(k);
      const Accumulator& a = streaming_.accumulators[k];
      for (size_t p = 0; p < next.partials[k].size(); ++p) {
        next.partials[k][p] =
            combine(a.reduction, a.k, transported(k, p, s, next), transported(k, p, t, next));
      }
    }
  }

  // Finished results of one state, by stage and point; later ones use earlier ones.
  using Finished = std::map<std::pair<size_t, size_t>, double>;

  double result(const State& state, size_t stage, size_t point, Finished& finished) const {
    const auto known = finished.find({stage, point});
    if (known != finished.end()) return known->second;
    const double value = computed(state, stage, point, finished);
    finished[{stage, point}] = value;
    return value;
  }

 private:
  // Values of references in one state, by reference and point; unknown ones are empty.
  using References = std::vector<std::optional<double>>;

  void begin_step(const State& state) const {
    old_ = state;
    const size_t count = streaming_.references.size() * std::max<size_t>(row_.columns.size(), 1);
    for (References* each : {&new_references_, &old_references_, &merged_references_}) {
      each->assign(count, std::nullopt);
    }
  }

  // What masks are made of holds no leaf.
  void find_hidden(size_t k, const std::vector<int64_t>& point, const AxisRange& range) const {
    if (hidden_ == nullptr) return;
    const auto leaves = [](ir::Expr) { return 0.0; };
    hides_.resize(static_cast<size_t>(range.end - range.begin));
    at(*hidden_, row_, range, streaming_.accumulators[k].columns, point, leaves, hides_.data());
    if (k == 0)
      left_out_ += std::count_if(hides_.begin(), hides_.end(), [](double h) { return h != 0; });
  }

  double computed(const State& state, size_t stage, size_t point, Finished& finished) const {
    if (row_.length == 0)
      return scalar(streaming_.cascade.stages[stage].reduction,
                    identity(streaming_.cascade.stages[stage].reduction));
    auto leaves = [&](ir::Expr leaf) -> double {
      if (leaf->leaf_kind == ir::LeafKind::Result) {
        return result(state, static_cast<size_t>(leaf->integer), point, finished);
      }
      return state_leaf(leaf, state, point);
    };
    const auto& columns = streaming_.cascade.stages[stage].columns;
    const Points& points = stage_points_[stage];
    return at(tapes_.finishes[stage], row_, streaming_.cascade.stream, columns,
              points[std::min(point, points.size() - 1)], std::ref(leaves));
  }

  double state_leaf(ir::Expr leaf, const State& state, size_t point) const {
    if (leaf->leaf_kind == ir::LeafKind::Count) return static_cast<double>(state.count);
    RF_CHECK(leaf->leaf_kind == ir::LeafKind::State, "unexpected leaf in a streaming form");
    const auto k = static_cast<size_t>(leaf->integer);
    const auto& list = state.partials[k];
    return scalar(streaming_.accumulators[k].reduction, list[std::min(point, list.size() - 1)]);
  }

  double reference(ir::Expr leaf, const State& next, const State& old, size_t point) const {
    if (leaf->leaf_kind != ir::LeafKind::NewResult && leaf->leaf_kind != ir::LeafKind::OldResult) {
      return state_leaf(leaf, old, point);
    }
    const bool is_new = leaf->leaf_kind == ir::LeafKind::NewResult;
    const State& state = is_new ? next : old;
    References& known = is_new          ? new_references_
                        : &old == &old_ ? old_references_
                                        : merged_references_;
    const auto number = static_cast<size_t>(leaf->integer);
    std::optional<double>& entry = known[point * streaming_.references.size() + number];
    if (entry) return *entry;
    auto leaves = [&](ir::Expr inner) { return state_leaf(inner, state, point); };
    const double value =
        at(tapes_.references[number], row_, streaming_.cascade.stream, {}, {}, std::ref(leaves));
    // A value of accumulators that are not updated yet is not final.
    if (!is_new || streaming_.references[number].ready_after <= updated_) entry = value;
    return value;
  }

  // State leaves of a transport are the old values, even of accumulators that are already updated.
  Partial transported(size_t k, size_t point, const State& old, const State& next) const {
    const Partial& own = old.partials[k][point];
    std::optional<Tape>& transport = tapes_.transports[k];
    if (!transport) return own;
    auto leaves = [&](ir::Expr leaf) { return reference(leaf, next, old, point); };
    return {at(*transport, row_, streaming_.cascade.stream, {}, {}, std::ref(leaves)), {}};
  }

  const Streaming& streaming_;
  StreamingTapes& tapes_;
  const Row& row_;
  Tape* const hidden_;
  mutable int64_t left_out_ = 0;
  mutable std::vector<double> lifted_, hides_;  // of a tile
  mutable State old_;                           // before the present tile or merge
  mutable int updated_ = 0;                     // accumulators that it has updated
  mutable References new_references_, old_references_, merged_references_;
  std::vector<Points> accumulator_points_, stage_points_;
  State empty_;
};

}  // namespace

struct StreamingSimulator::Impl {
  explicit Impl(const Streaming& form) : streaming(form), tapes(form) {}
  const Streaming streaming;
  StreamingTapes tapes;
  int64_t left_out = 0;

  RowResult run(const Row& row, const std::vector<int64_t>& bounds, int64_t tile, Tape* hidden);
};

StreamingSimulator::StreamingSimulator(const Streaming& streaming)
    : impl_(std::make_unique<Impl>(streaming)) {}
StreamingSimulator::~StreamingSimulator() = default;

RowResult StreamingSimulator::run(const Row& row, const std::vector<int64_t>& bounds,
                                  int64_t tile) {
  return impl_->run(row, bounds, tile, nullptr);
}

RowResult StreamingSimulator::run_visible(const Row& row, const std::vector<int64_t>& bounds,
                                          int64_t tile, ir::Expr hidden) {
  Tape tape(hidden);
  return impl_->run(row, bounds, tile, &tape);
}

int64_t StreamingSimulator::left_out() const { return impl_->left_out; }

RowResult StreamingSimulator::Impl::run(const Row& row, const std::vector<int64_t>& bounds,
                                        int64_t tile, Tape* hidden) {
  TileContext machine(streaming, tapes, row, hidden);
  State total = machine.empty(), segment;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    segment = machine.empty();
    for (int64_t begin = bounds[i]; begin < bounds[i + 1]; begin += tile) {
      machine.fold(segment, begin, std::min(begin + tile, bounds[i + 1]));
    }
    machine.merge(total, segment);
  }
  left_out = machine.left_out();
  RowResult out;
  std::vector<Partial> ranked;
  TileContext::Finished finished;
  for (size_t i = 0; i < streaming.cascade.stages.size(); ++i) {
    const Stage& stage = streaming.cascade.stages[i];
    std::vector<double>& flat = out.results.emplace_back();
    ranked.emplace_back();
    if (is_ranked(stage.reduction)) {
      const auto k = static_cast<size_t>(streaming.finish[i]->integer);
      ranked.back() = total.partials[k][0];
      flat = flattened(stage.reduction, ranked.back());
      continue;
    }
    const size_t points = points_of(stage.columns, row).size();
    for (size_t p = 0; p < points; ++p) flat.push_back(machine.result(total, i, p, finished));
  }
  const auto result_of = [&](size_t stage, size_t point) {
    return machine.result(total, stage, point, finished);
  };
  write_outputs(streaming.cascade.outputs, tapes.outputs, streaming.cascade.stream,
                streaming.cascade.stages, row, result_of, ranked, out);
  return out;
}

RowResult run_unfused(ir::ExprPool&, const Cascade& cascade, const Row& row) {
  return UnfusedSimulator(cascade).run(row);
}

RowResult run_streaming(ir::ExprPool&, const Streaming& streaming, const Row& row,
                        const std::vector<int64_t>& bounds, int64_t tile) {
  return StreamingSimulator(streaming).run(row, bounds, tile);
}

}  // namespace redfuser::cascade
