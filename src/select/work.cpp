#include "select/work.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "ir/evaluate.h"
#include "ir/polynomial.h"
#include "ir/scalars/operations.h"

namespace redfuser::select {
namespace {

constexpr double kSector = 32;  // bytes of memory that an access moves at least

class Counter {
 public:
  Counter(const std::vector<ir::Expr>& axes, const KnownSizes& sizes) : sizes_(sizes) {
    for (ir::Expr axis : axes) {
      if (axis->op == ir::ExprOp::Axis) scope_.push_back(axis);
    }
    inner_ = scope_.empty() ? nullptr : scope_.back();
    work_.points = points();
  }

  Work run(std::span<const ir::Expr> roots) {
    for (ir::Expr root : roots) go(root);
    return work_;
  }

 private:
  double extent(ir::Expr axis) const {
    return static_cast<double>(std::max<int64_t>(sizes_.of(axis->extent()), 1));
  }

  double points() const {
    double product = 1;
    for (ir::Expr axis : scope_) product *= extent(axis);
    return product;
  }

  void go(ir::Expr e) {
    if (!seen_.insert(e).second) return;
    if (e->op == ir::ExprOp::Reduce) return reduce(e);
    for (ir::Expr arg : e->args) go(arg);
    const double times = points();
    if (e->op == ir::ExprOp::Read) return read(e, times);
    if (e->args.empty()) return;
    const ir::ScalarOp& op = ir::scalar_op(e->op);
    (op.costly ? work_.specials : work_.scalars) += times;
  }

  void reduce(ir::Expr e) {
    const std::set<ir::Expr> outside = seen_;
    scope_.push_back(e->bound_axis());
    const double before = steps_;
    steps_ *= extent(e->bound_axis());
    work_.steps = std::max(work_.steps, steps_);
    go(e->body());
    work_.scalars += points();
    scope_.pop_back();
    steps_ = before;
    seen_ = outside;
  }

  void read(ir::Expr e, double times) {
    double distinct = 1;
    for (ir::Expr axis : scope_) {
      if (e->depends_on(axis)) distinct *= extent(axis);
    }
    const auto bytes = static_cast<double>(size_of(e->dtype));
    work_.bytes += distinct * bytes;
    work_.accesses += times * accessed(e, bytes);
  }

  // Bytes that one of neighbouring threads moves: a share of one element where they read the same,
  // a sector where their elements are apart.
  double accessed(ir::Expr e, double bytes) const {
    constexpr double kWarp = 32, kNear = 4;
    if (inner_ == nullptr || e->args.empty()) return bytes;
    if (!e->depends_on(inner_)) return bytes / kWarp;
    ir::Expr last = e->args.back();
    if (e->args.size() > 1) return last->depends_on(inner_) ? bytes : std::max(kSector, bytes);
    const std::optional<double> stride = stride_of(last);
    return stride && std::abs(*stride) <= kNear ? bytes : std::max(kSector, bytes);
  }

  // Of an offset from one thread to the next, within the bounds that it is clamped to; nullopt
  // where it is not affine in their axis.
  std::optional<double> stride_of(ir::Expr offset) const {
    if (offset == inner_) return 1;
    if (offset->op == ir::ExprOp::Min || offset->op == ir::ExprOp::Max) {
      const bool first = offset->args[0]->depends_on(inner_);
      if (first && offset->args[1]->depends_on(inner_)) return std::nullopt;
      return stride_of(offset->args[first ? 0 : 1]);
    }
    const ir::Polynomial polynomial = ir::to_polynomial(offset);
    double stride = 0;
    for (const auto& [monomial, coefficient] : polynomial) {
      const bool moves = std::any_of(monomial.begin(), monomial.end(),
                                     [&](ir::Expr factor) { return factor->depends_on(inner_); });
      if (!moves) continue;
      if (monomial.size() > 1 || monomial[0] == offset) return std::nullopt;
      const std::optional<double> own = stride_of(monomial[0]);
      if (!own) return std::nullopt;
      stride += static_cast<double>(coefficient) * *own;
    }
    return stride;
  }

  const KnownSizes& sizes_;
  std::vector<ir::Expr> scope_;
  ir::Expr inner_ = nullptr;
  double steps_ = 1;
  std::set<ir::Expr> seen_;
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
  return Counter(axes, sizes).run(roots);
}

double time_of(const Work& work, const Machine& machine, int lanes, double resident) {
  // Scalar kernels reach an eighth of the peak; few threads reach less, and one step of a thread's
  // loop waits for its loads. The first loads take kStart.
  constexpr double kShare = 8, kThreads = 512, kStep = 0.01, kStart = 1.5;
  const double threads = std::max(work.points * lanes, 1.0);
  const double busy =
      std::min({1.0, threads / (kThreads * machine.multiprocessors), resident / kThreads});
  const double memory = std::max(work.bytes / machine.dram_rate, work.accesses / machine.l2_rate());
  const double scalar = kShare * work.scalars / machine.scalar_rate();
  const double special = work.specials / machine.special_rate();
  return kLaunchTime + kStart + std::max({memory, scalar, special}) / busy +
         kStep * work.steps / lanes;
}

}  // namespace redfuser::select
