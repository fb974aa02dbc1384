#include "cpu/steps/map/map_sections.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "cpu/tile/interval.h"
#include "cpu/tile/specialize.h"
#include "ir/polynomial.h"

namespace redfuser::cpu {
namespace {

constexpr size_t kMostSections = 64;

// The first position at which `difference` > 0 changes, and that at which it is 0, for a difference
// that is a constant plus or minus an axis.
struct Boundary {
  ir::Expr axis;
  int64_t position, zero;
  bool rises;
};

std::optional<Boundary> boundary_of(const ir::Polynomial& difference) {
  int64_t constant = 0, sign = 0;
  ir::Expr axis = nullptr;
  for (const auto& [monomial, coefficient] : difference) {
    if (monomial.empty()) {
      constant = coefficient;
      continue;
    }
    const bool is_axis = monomial.size() == 1 && monomial[0]->op == ir::ExprOp::Axis;
    if (axis != nullptr || !is_axis || std::abs(coefficient) != 1) return std::nullopt;
    axis = monomial[0];
    sign = coefficient;
  }
  if (axis == nullptr) return std::nullopt;
  if (sign < 0) return Boundary{axis, constant, constant, false};
  return Boundary{axis, 1 - constant, -constant, true};
}

// a < b is b - a > 0, and a <= b is b - a + 1 > 0.
std::optional<Boundary> boundary_of(ir::Expr comparison) {
  if (comparison->args.size() != 2) return std::nullopt;
  const bool strict = comparison->op == ir::ExprOp::Less;
  if (!strict && comparison->op != ir::ExprOp::LessEqual) return std::nullopt;
  ir::Expr a = comparison->args[0], b = comparison->args[1];
  if (a->dtype != DType::Int64) return std::nullopt;
  ir::Polynomial difference = to_polynomial(b) + ir::scaled(ir::to_polynomial(a), -1);
  if (!strict) difference = difference + ir::Polynomial{{{}, 1}};
  return boundary_of(difference);
}

class Boundaries {
 public:
  explicit Boundaries(std::vector<ir::Expr> axes)
      : positions_(axes.size()), axes_(std::move(axes)) {}

  void find(ir::Expr body) {
    std::set<ir::Expr> digits;
    visit(body, [&](ir::Expr e) { add_digits(e, digits); });
    visit(body, [&](ir::Expr e) {
      if (digits.count(e)) return;
      if (e->op == ir::ExprOp::Select) visit(e->args[0], [&](ir::Expr c) { note(boundary_of(c)); });
      if (e->dtype == DType::Int64) find_branches(e);
    });
  }

  // Once all are found. Both operands of a minimum are the same where their difference is 0: the
  // boundary may be before or after that position.
  void settle() {
    for (const std::optional<Boundary>& b : either_) {
      for (size_t i = 0; b && i < axes_.size(); ++i) {
        const std::set<int64_t>& known = positions_[i];
        const bool within = axes_[i] == b->axis && b->zero > 0 && b->zero + 1 < extent_of(axes_[i]);
        if (within && !known.count(b->zero) && !known.count(b->zero + 1)) {
          positions_[i].insert(b->zero);
        }
      }
    }
  }

  // The axis with the most positions, or none.
  std::optional<size_t> axis() const {
    size_t most = 0;
    for (size_t i = 1; i < positions_.size(); ++i) {
      if (positions_[i].size() > positions_[most].size()) most = i;
    }
    const bool any = !positions_.empty() && !positions_[most].empty();
    return any ? std::optional(most) : std::nullopt;
  }
  const std::set<int64_t>& positions(size_t axis) const { return positions_[axis]; }

 private:
  // The remainders of a read whose quotients are the index before: both together are one position
  // of a tensor of other sizes, and no period begins.
  static void add_digits(ir::Expr read, std::set<ir::Expr>& digits) {
    for (size_t i = 1; read->op == ir::ExprOp::Read && i < read->args.size(); ++i) {
      ir::Expr digit = read->args[i], before = read->args[i - 1];
      if (before->op == ir::ExprOp::FloorMod) before = before->args[0];
      const bool pair = digit->op == ir::ExprOp::FloorMod && before->op == ir::ExprOp::FloorDiv &&
                        digit->args == before->args;
      if (pair) digits.insert(digit);
    }
  }

  // Where another operand of a minimum or maximum is taken, a sign changes, or a period begins.
  void find_branches(ir::Expr e) {
    if (e->op == ir::ExprOp::Min || e->op == ir::ExprOp::Max) {
      either_.push_back(boundary_of(ir::to_polynomial(e->args[1]) +
                                    ir::scaled(ir::to_polynomial(e->args[0]), -1)));
    } else if (e->op == ir::ExprOp::Abs) {
      either_.push_back(boundary_of(ir::to_polynomial(e->args[0])));
    } else if (e->op == ir::ExprOp::FloorMod && e->args[1]->is_constant()) {
      note_multiples(boundary_of(ir::to_polynomial(e->args[0])), e->args[1]->integer);
    }
  }

  // Of ⌊e/n⌋: a multiple belongs to what follows where e rises, to what precedes where it falls.
  void note_multiples(std::optional<Boundary> b, int64_t n) {
    if (!b || n <= 0) return;
    const int64_t length = extent_of(b->axis), first = b->rises ? b->zero : b->zero + 1;
    if (length / n > static_cast<int64_t>(kMostSections)) return;
    for (b->position = (first % n + n) % n; b->position < length; b->position += n) note(b);
  }

  void note(const std::optional<Boundary>& boundary) {
    if (!boundary) return;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const bool within = axes_[i] == boundary->axis && boundary->position > 0 &&
                          boundary->position < extent_of(axes_[i]);
      if (within) positions_[i].insert(boundary->position);
    }
  }

  std::vector<std::optional<Boundary>> either_;
  std::vector<std::set<int64_t>> positions_;
  std::vector<ir::Expr> axes_;  // copies; of one element: 0
};

// What decided() makes of an operation, whose operands are `args`; null where it is not decided.
ir::Expr branch_of(ir::ExprPool& pool, ir::ExprOp op, const std::vector<ir::Expr>& args) {
  if (op == ir::ExprOp::Abs) {
    const Interval range = interval_of(args[0]);
    if (range.low >= 0) return args[0];
    return range.high <= 0 ? pool.sub(pool.integer(0), args[0]) : nullptr;
  }
  if (op == ir::ExprOp::FloorMod) {
    if (!args[1]->is_constant() || args[1]->integer <= 0) return nullptr;
    const int64_t n = args[1]->integer;
    const Interval range = interval_of(args[0]);
    const auto quotient = [n](int64_t x) { return x / n - (x % n < 0); };
    if (quotient(range.low) != quotient(range.high)) return nullptr;
    return pool.sub(args[0], pool.integer(quotient(range.low) * n));
  }
  const Interval range = interval_of(pool.sub(args[0], args[1]));
  const bool least = op == ir::ExprOp::Min;
  if (range.high <= 0) return args[least ? 0 : 1];
  return range.low >= 0 ? args[least ? 1 : 0] : nullptr;
}

}  // namespace

ir::Expr decided(ir::ExprPool& pool, ir::Expr expr) {
  return pool.rewrite(expr, [&](ir::Expr e) -> ir::Expr {
    const bool branches = e->op == ir::ExprOp::Min || e->op == ir::ExprOp::Max ||
                          e->op == ir::ExprOp::Abs || e->op == ir::ExprOp::FloorMod;
    if (!branches || e->dtype != DType::Int64) return nullptr;
    std::vector<ir::Expr> args;
    for (ir::Expr arg : e->args) args.push_back(decided(pool, arg));
    ir::Expr branch = branch_of(pool, e->op, args);
    return branch != nullptr ? branch : pool.make(e->op, std::move(args));
  });
}

void narrow(ir::ExprPool& pool, ir::Expr axis, const AxisRange& range, std::vector<ir::Expr>& axes,
            const std::vector<std::vector<ir::Expr>*>& expressions) {
  const int64_t length = constant_of(pool.sub(range.end, range.begin));
  const ir::Expr part = length == 1 ? pool.integer(0) : pool.axis("s", pool.integer(length));
  const ir::Expr position = pool.add(part, range.begin);
  for (std::vector<ir::Expr>* list : expressions) {
    for (ir::Expr& e : *list) e = decided(pool, pool.substitute(e, {{axis, position}}));
  }
  std::replace(axes.begin(), axes.end(), axis, part);
}

namespace {

// The positions along one axis of the bodies, with those that only a part of it shows.
std::set<int64_t> all_positions(ir::ExprPool& pool, const std::vector<ir::Expr>& axes, size_t axis,
                                const std::vector<ir::Expr>& bodies, std::set<int64_t> positions) {
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds && positions.size() < kMostSections; ++round) {
    std::set<int64_t> more = positions;
    int64_t begin = 0;
    std::set<int64_t> ends = positions;
    ends.insert(extent_of(axes[axis]));
    for (const int64_t end : ends) {
      std::vector<ir::Expr> parts = axes, own = bodies;
      narrow(pool, axes[axis], {pool.integer(begin), pool.integer(end)}, parts, {&own});
      Boundaries inner({parts[axis]});
      for (ir::Expr body : own) inner.find(body);
      inner.settle();
      for (const int64_t at : inner.positions(0)) more.insert(begin + at);
      begin = end;
    }
    if (more.size() == positions.size()) break;
    positions = std::move(more);
  }
  return positions;
}

// The sections of a step with these axes, whose bodies are decided, along the axis with the most
// positions.
std::vector<AxisSection> axis_sections(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                       const std::vector<ir::Expr>& bodies) {
  Boundaries boundaries(axes);
  for (ir::Expr body : bodies) boundaries.find(body);
  boundaries.settle();
  const std::optional<size_t> axis = boundaries.axis();
  if (!axis || boundaries.positions(*axis).size() >= kMostSections) return {};
  const std::set<int64_t> positions =
      all_positions(pool, axes, *axis, bodies, boundaries.positions(*axis));
  if (positions.size() >= kMostSections) return {};
  std::vector<AxisSection> sections;
  int64_t begin = 0;
  for (const int64_t end : positions) {
    sections.push_back({*axis, begin, end});
    begin = end;
  }
  sections.push_back({*axis, begin, extent_of(axes[*axis])});
  return sections;
}

// Divides a section along the axes that it leaves whole.
void add_boxes(ir::ExprPool& pool, std::vector<ir::Expr> axes, std::vector<ir::Expr> bodies,
               MapSection section, std::vector<MapSection>& boxes) {
  const AxisSection last = section.back();
  narrow(pool, axes[last.axis], {pool.integer(last.begin), pool.integer(last.end)}, axes,
         {&bodies});
  // A narrowed axis shows nothing more.
  std::vector<ir::Expr> whole = axes;
  for (const AxisSection& part : section) whole[part.axis] = pool.integer(0);
  const std::vector<AxisSection> parts = axis_sections(pool, whole, bodies);
  if (parts.empty()) boxes.push_back(section);
  for (const AxisSection& part : parts) {
    MapSection box = section;
    box.push_back(part);
    add_boxes(pool, axes, bodies, std::move(box), boxes);
  }
}

}  // namespace

std::vector<MapSection> map_sections(const fuse::MapStep& step, std::span<const int64_t> symbols,
                                     bool boxes) {
  ir::ExprPool pool;
  Specializer specializer(pool, symbols);
  std::vector<ir::Expr> axes;
  for (ir::Expr axis : step.axes) axes.push_back(specializer.copy(axis));
  std::vector<ir::Expr> bodies;
  for (const auto& output : step.outputs) {
    bodies.push_back(decided(pool, specializer.copy(output.body)));
  }
  const std::vector<AxisSection> sections = axis_sections(pool, axes, bodies);
  std::vector<MapSection> result;
  for (const AxisSection& section : sections) {
    if (boxes) {
      add_boxes(pool, axes, bodies, {section}, result);
      if (result.size() >= kMostSections) return {};
    } else {
      result.push_back({section});
    }
  }
  if (boxes && result.size() == sections.size()) return {};
  return result;
}

}  // namespace redfuser::cpu
