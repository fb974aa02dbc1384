#include "select/work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "ir/evaluate.h"
#include "ir/scalars/operations.h"
#include "select/instructions.h"
#include "select/strides.h"

namespace redfuser::select {
namespace {

constexpr double kSector = 32;  // bytes of memory that an access moves at least
constexpr double kWarp = 32;
constexpr double kCycle = 22;  // bytes that a multiprocessor moves while its cache takes a cycle
constexpr double kGroup = 4;   // adjacent points that a thread of a map computes together

// The elements of a value that its reads touch: as many as there are indices, at most all from the
// first to the last.
struct Touched {
  double sum = 0, first = HUGE_VAL, last = -HUGE_VAL, element = 0;

  void add(double distinct, const std::optional<Span>& span, double bytes) {
    element = std::max(element, bytes);
    sum += distinct;
    first = std::min(first, span ? span->first : -HUGE_VAL);
    last = std::max(last, span ? span->last : HUGE_VAL);
  }
  double bytes() const { return element * std::min(sum, last - first + 1); }
};

class Counter {
 public:
  Counter(std::span<const ir::Expr> roots, const std::vector<ir::Expr>& axes,
          const KnownSizes& sizes)
      : sizes_(sizes) {
    for (ir::Expr axis : axes) {
      if (axis->op == ir::ExprOp::Axis) scope_.push_back(axis);
    }
    inner_ = scope_.empty() ? nullptr : scope_.back();
    parallel_ = scope_.size();
    work_.points = points(parallel_);
    for (ir::Expr root : roots) {
      ir::visit(root, [&](ir::Expr e) { reduces_ |= e->op == ir::ExprOp::Reduce; });
    }
  }

  Work run(std::span<const ir::Expr> roots) {
    for (ir::Expr root : roots) go(root);
    for (const auto& [value, touched] : touched_) work_.bytes += touched.bytes();
    return work_;
  }

 private:
  // A number that data decide counts as few.
  double extent(ir::Expr axis) const {
    constexpr double kFew = 8;
    if (axis->extent()->has_read) return kFew;
    return static_cast<double>(std::max<int64_t>(sizes_.of(axis->extent()), 1));
  }

  // Of the outermost `count` axes.
  double points(size_t count) const {
    double product = 1;
    for (size_t i = 0; i < count; ++i) product *= extent(scope_[i]);
    return product;
  }

  // How often an expression is computed: in the outermost loop that binds what it depends on, and
  // for several adjacent points at once where these have the same value.
  double times_of(ir::Expr e) const {
    size_t count = scope_.size();
    while (count > parallel_ && !e->depends_on(scope_[count - 1])) --count;
    const bool shared = !reduces_ && inner_ != nullptr && !e->depends_on(inner_);
    return points(count) / (shared ? kGroup : 1);
  }

  void go(ir::Expr e) {
    if (!seen_.insert(e).second) return;
    if (e->op == ir::ExprOp::Reduce) return reduce(e);
    if (e->op == ir::ExprOp::Read) return read(e);
    for (ir::Expr arg : e->args) go(arg);
    if (e->args.empty()) return;
    const double times = times_of(e);
    if (ir::scalar_op(e->op).costly) {
      work_.specials += times;
    } else {
      work_.scalars += times * instructions_of(e);
    }
  }

  void reduce(ir::Expr e) {
    constexpr double kLoop = 3;  // its counter, and the term's way into the result
    go(e->extent());
    const std::set<ir::Expr> outside = seen_;
    scope_.push_back(e->bound_axis());
    const double before = steps_;
    steps_ *= extent(e->bound_axis());
    work_.steps = std::max(work_.steps, steps_);
    go(e->body());
    work_.scalars += kLoop * points(scope_.size());
    ir::Expr axis = scope_.back();
    scope_.pop_back();
    steps_ = before;
    std::erase_if(
        seen_, [&](ir::Expr each) { return each->depends_on(axis) && outside.count(each) == 0; });
  }

  void read(ir::Expr e) {
    const auto bytes = static_cast<double>(size_of(e->dtype));
    double distinct = 1;
    for (ir::Expr axis : scope_) {
      if (e->depends_on(axis)) distinct *= extent(axis);
    }
    touched_[e->integer].add(distinct, span_of(e), bytes);
    const double times = times_of(e);
    const std::optional<double> stride = stride_of(e, inner_);
    const bool adjacent = !reduces_ && stride && *stride == 1;
    if (!adjacent) {
      for (ir::Expr arg : e->args) go(arg);
    }
    work_.scalars += times * kLoadInstructions / (adjacent ? kGroup : 1);
    const double cycles = load_cycles(stride, bytes) / kWarp;
    work_.accesses += times * std::max(accessed(e, stride, bytes), kCycle * cycles);
  }

  // The innermost loop of a thread that the read depends on; null: none.
  ir::Expr loop_of(ir::Expr e) const {
    for (size_t i = scope_.size(); i-- > parallel_;) {
      if (e->depends_on(scope_[i])) return scope_[i];
    }
    return nullptr;
  }

  // Bytes that one of neighbouring threads moves: a share of one element where they read the same,
  // a sector where their elements are apart. What the next step of a loop reads beside it is in the
  // first-level cache, and so is most of what data decide.
  double accessed(ir::Expr e, std::optional<double> stride, double bytes) const {
    constexpr double kNear = 4, kLine = 128, kByChance = 8;
    if (inner_ == nullptr || e->args.empty()) return bytes;
    if (!e->depends_on(inner_)) return bytes / kWarp;
    if (!stride) return std::max(kByChance, bytes);
    const bool near = std::abs(*stride) <= kNear;
    const double apart = near ? bytes : std::max(kSector, bytes);
    ir::Expr loop = loop_of(e);
    const std::optional<double> step = loop ? stride_of(e, loop) : std::nullopt;
    if (!step) return apart;
    const double walk = std::abs(*step);
    if (walk * bytes > (near ? kLine : kSector)) return apart;
    if (!near) return bytes * std::max(walk, 1.0);
    const double terms = extent(loop);
    return bytes * std::min(1.0, (kWarp * std::abs(*stride) + terms * walk) / (kWarp * terms));
  }

  // Elements from the first to the last that the read touches, where no data decide.
  std::optional<Span> span_of(ir::Expr e) const {
    if (e->args.size() != 1) return std::nullopt;
    return span_over(e->args[0], scope_, sizes_);
  }

  // Of reads by several indices the last one alone is along memory.
  std::optional<double> stride_of(ir::Expr e, ir::Expr axis) const {
    constexpr double kApart = 33;
    if (axis == nullptr || e->args.empty()) return 0;
    if (!e->depends_on(axis)) return 0;
    if (e->args.size() > 1 && !e->args.back()->depends_on(axis)) return kApart;
    return stride_along(e->args.back(), axis, sizes_);
  }

  const KnownSizes& sizes_;
  std::vector<ir::Expr> scope_;
  size_t parallel_ = 0;
  ir::Expr inner_ = nullptr;
  bool reduces_ = false;
  double steps_ = 1;
  std::set<ir::Expr> seen_;
  std::map<int64_t, Touched> touched_;  // of a value
  Work work_;
};

}  // namespace

int64_t KnownSizes::of(ir::Expr size) const {
  if (size->is_constant()) return size->integer;
  if (every_ < 0) return symbols_.empty() ? -1 : evaluate_size(size, symbols_);
  return static_cast<int64_t>(
      evaluate(size, [&](ir::Expr) { return static_cast<double>(every_); }));
}

KnownSizes KnownSizes::all(int64_t value) {
  KnownSizes sizes;
  sizes.every_ = value;
  return sizes;
}

Work work_of(std::span<const ir::Expr> roots, const std::vector<ir::Expr>& axes,
             const KnownSizes& sizes) {
  return Counter(roots, axes, sizes).run(roots);
}

double time_of(const Work& work, const Machine& machine, int lanes, double resident) {
  // Few threads reach less, and one step of a thread's loop waits for its loads. The first loads
  // take kStart.
  constexpr double kThreads = 512, kStep = 0.01, kStart = 1.5;
  const double cycles = 1.0 * machine.multiprocessors * machine.clock;  // of all of them, in 1 us
  const double threads = std::max(work.points * lanes, 1.0);
  const double busy =
      std::min({1.0, threads / (kThreads * machine.multiprocessors), resident / kThreads});
  const double memory = std::max(work.bytes / machine.dram_rate, work.accesses / machine.l2_rate());
  const double scalar = work.scalars / (kLanes * cycles);
  const double special = work.specials / machine.special_rate();
  const double computed = std::max({memory, scalar, special}) / busy;
  return kLaunchTime + kStart + std::max(computed, work.blocks * kBlockStart) +
         kStep * work.steps / lanes;
}

}  // namespace redfuser::select
