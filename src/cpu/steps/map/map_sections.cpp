#include "cpu/steps/map/map_sections.h"

#include <set>

#include "cpu/tile/specialize.h"
#include "ir/polynomial.h"

namespace redfuser::cpu {
namespace {

constexpr size_t kMostSections = 64;

// The first position at which `difference` > 0 changes, for a difference that is a constant plus or
// minus an axis.
struct Boundary {
  ir::Expr axis;
  int64_t position;
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
  return Boundary{axis, sign < 0 ? constant : 1 - constant};
}

// a < b is b - a > 0, and a <= b is b - a + 1 > 0.
std::optional<Boundary> boundary_of(ir::Expr comparison) {
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
    visit(body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Select) visit(e->args[0], [&](ir::Expr c) { note(c); });
    });
  }

  std::vector<MapSection> sections() const {
    size_t most = 0;
    for (size_t i = 1; i < positions_.size(); ++i) {
      if (positions_[i].size() > positions_[most].size()) most = i;
    }
    std::vector<MapSection> sections;
    if (positions_.empty() || positions_[most].empty()) return sections;
    if (positions_[most].size() >= kMostSections) return sections;
    int64_t begin = 0;
    for (const int64_t end : positions_[most]) {
      sections.push_back({most, begin, end});
      begin = end;
    }
    sections.push_back({most, begin, extent_of(axes_[most])});
    return sections;
  }

 private:
  void note(ir::Expr condition) {
    const std::optional<Boundary> boundary = boundary_of(condition);
    if (!boundary) return;
    for (size_t i = 0; i < axes_.size(); ++i) {
      const bool within = axes_[i] == boundary->axis && boundary->position > 0 &&
                          boundary->position < extent_of(axes_[i]);
      if (within) positions_[i].insert(boundary->position);
    }
  }

  std::vector<std::set<int64_t>> positions_;
  std::vector<ir::Expr> axes_;  // copies; of one element: 0
};

}  // namespace

std::vector<MapSection> map_sections(const fuse::MapStep& step, std::span<const int64_t> symbols) {
  ir::ExprPool pool;
  Specializer specializer(pool, symbols);
  std::vector<ir::Expr> axes;
  for (ir::Expr axis : step.axes) axes.push_back(specializer.copy(axis));
  Boundaries boundaries(axes);
  for (const auto& output : step.outputs) boundaries.find(specializer.copy(output.body));
  return boundaries.sections();
}

}  // namespace redfuser::cpu
