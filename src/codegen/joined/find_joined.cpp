#include "codegen/joined/find_joined.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/joined/chain_joiner.h"
#include "codegen/joined/find_block_maps.h"
#include "codegen/joined/maps_joiner.h"
#include "codegen/joined/plan_view.h"
#include "codegen/joined/rows_joiner.h"

namespace redfuser::codegen {
namespace {

// Pairs of a step and the product that alone reads its result.
class PairFinder {
 public:
  explicit PairFinder(const PlanView& view) : view_(view) {}

  // The product that takes in the rows of a cascade.
  std::optional<size_t> product_of_rows(size_t rows) const {
    if (!std::holds_alternative<fuse::CascadeStep>(view_.plan.steps[rows].kind)) return {};
    return follower(rows, [&](size_t product) {
      return !may_overwrite(rows, product + 1) &&
             has_thin_rows(view_.graph, view_.plan, view_.plan.steps[rows],
                           view_.plan.steps[product], view_.target);
    });
  }

  // The product whose left operand is the result of another one. An output of its own is rarely in
  // the memory of its input; a run copies it then.
  std::optional<size_t> end_of_chain(size_t first) const {
    if (product(first) == nullptr || is_output(product(first)->value)) return {};
    return follower(first, [&](size_t second) {
      const auto* read = lines_of(*product(second));
      const auto value = static_cast<ir::ValueId>((*read)->integer);
      return view_.plan.root(value) == view_.plan.root(product(first)->value) &&
             !may_overwrite(first, second) &&
             has_chain(view_.graph, view_.plan, view_.plan.steps[first], view_.plan.steps[second],
                       view_.target);
    });
  }

 private:
  // The product after `first` that touches what that one touches before any other step does, if it
  // reads its rows alone and `joins`.
  template <typename Joins>
  std::optional<size_t> follower(size_t first, const Joins& joins) const {
    if (!view_.is_free(first)) return std::nullopt;
    Values touched = view_.touched[first].reads;
    touched.insert(view_.touched[first].writes.begin(), view_.touched[first].writes.end());
    for (size_t i = first + 1; i < view_.plan.steps.size(); ++i) {
      if (view_.is_alias(i) || !touches(i, touched)) continue;
      return reads_alone(i) && joins(i) ? std::optional(i) : std::nullopt;
    }
    return std::nullopt;
  }

  // Null: no product of floats in dense memory.
  const fuse::ProductStep* product(size_t number) const {
    const auto* product = std::get_if<fuse::ProductStep>(&view_.plan.steps[number].kind);
    if (product == nullptr || product->of_integers() || !view_.is_free(number)) return nullptr;
    return view_.target.append_of(product->value) == nullptr ? product : nullptr;
  }

  bool touches(size_t step, const Values& values) const {
    const Touched& touched = view_.touched[step];
    return overlap(touched.reads, values) || overlap(touched.writes, values);
  }

  // Whether the step is a product of rows that no later step touches.
  bool reads_alone(size_t number) const {
    const auto* product = this->product(number);
    const auto* read = product == nullptr ? nullptr : lines_of(*product);
    return read != nullptr &&
           !is_read_elsewhere(number, static_cast<ir::ValueId>((*read)->integer));
  }

  bool is_output(ir::ValueId value) const {
    const std::vector<ir::ValueId>& outputs = view_.graph.outputs;
    return std::any_of(outputs.begin(), outputs.end(), [&](ir::ValueId output) {
      return view_.plan.root(output) == view_.plan.root(value);
    });
  }

  // Whether an output of the graph that is written after the first step's place in the plan, before
  // the step `end`, may be in the memory of an input that it reads (runtime::may_write_in_place).
  bool may_overwrite(size_t first, size_t end) const {
    const Values& reads = view_.touched[first].reads;
    for (size_t i = first + 1; i < end; ++i) {
      for (const ir::ValueId written : view_.touched[i].writes) {
        if (!view_.overwritten(written, reads, may_be_alike).empty()) return true;
      }
    }
    return false;
  }

  static const ir::Expr* lines_of(const fuse::ProductStep& product) {
    const ir::Expr* read = &product.a;
    while ((*read)->op == ir::ExprOp::Cast) read = &(*read)->args[0];
    return (*read)->op == ir::ExprOp::Read ? read : nullptr;
  }

  bool is_read_elsewhere(size_t product, ir::ValueId lines) const {
    const Values root = {view_.plan.root(lines)};
    for (size_t i = product + 1; i < view_.plan.steps.size(); ++i) {
      if (!view_.is_alias(i) && touches(i, root)) return true;
    }
    return false;
  }

  const PlanView& view_;
};

// Takes the steps in the plan's order. A group is open as long as its steps may move behind the
// next one.
class MapsFinder {
 public:
  explicit MapsFinder(const PlanView& view) : view_(view) {}

  std::vector<JoinedGroup> find() {
    for (size_t i = 0; i < view_.plan.steps.size(); ++i) {
      if (!view_.is_alias(i)) take(i);
    }
    for (const Open& group : open_) close(group);
    return std::move(found_);
  }

 private:
  struct Open {
    std::vector<size_t> steps;
    Touched touched;
    int passed = 0;  // steps since the last one
  };

  void take(size_t step) {
    // Steps that are far apart would keep memory for each other.
    constexpr int kMostPassed = 4;
    constexpr size_t kMostParts = 16;
    const bool is_map = std::holds_alternative<fuse::MapStep>(view_.plan.steps[step].kind);
    bool joins = is_map && view_.is_free(step);
    if (joins) open_.push_back({});
    std::vector<Open> open;
    for (Open& group : open_) {
      if (view_.conflicts(group.touched, step)) {
        close(group);
        continue;
      }
      if (joins) {
        group.steps.push_back(step);
        group.touched.add(view_.touched[step]);
      }
      group.passed = joins ? 0 : group.passed + 1;
      joins = false;
      if (group.passed > kMostPassed || group.steps.size() == kMostParts) {
        close(group);
      } else if (!group.steps.empty()) {
        open.push_back(std::move(group));
      }
    }
    open_ = std::move(open);
  }

  // Divides the group's steps among kernels, by the size of their arguments.
  void close(const Open& group) {
    constexpr int64_t kMostArguments = 4000;  // of 4 KB; a part has one more
    JoinedGroup joined{JoinedGroup::Kind::Maps, {}};
    int64_t arguments = 0;
    const auto finish = [&] {
      if (joined.steps.size() > 1) found_.push_back(joined);
      joined.steps.clear();
      arguments = 0;
    };
    if (group.steps.size() < 2) return;
    for (const size_t step : group.steps) {
      const auto own = map_arguments(view_.graph, view_.plan.steps[step], view_.target);
      if (!own) continue;
      const int64_t needed = *own + static_cast<int64_t>(sizeof(int64_t));
      if (arguments + needed > kMostArguments) finish();
      joined.steps.push_back(step);
      arguments += needed;
    }
    finish();
  }

  const PlanView& view_;
  std::vector<Open> open_;
  std::vector<JoinedGroup> found_;
};

}  // namespace

std::vector<JoinedGroup> find_joined(const ir::Graph& graph, const fuse::Plan& plan,
                                     const Target& target, const std::set<size_t>& on_host) {
  const PlanView view(graph, plan, target, on_host);
  std::vector<JoinedGroup> groups = MapsFinder(view).find();
  take_block_maps(view, groups);
  const PairFinder finder(view);
  std::set<size_t> taken;  // by pairs: a step is in one
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto product = finder.product_of_rows(i);
    if (product && taken.insert(*product).second) {
      groups.push_back({JoinedGroup::Kind::ThinRows, {i, *product}});
    }
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (taken.count(i) > 0) continue;
    const auto product = finder.end_of_chain(i);
    if (!product || !taken.insert(*product).second) continue;
    taken.insert(i);
    groups.push_back({JoinedGroup::Kind::Chain, {i, *product}});
  }
  return groups;
}

}  // namespace redfuser::codegen
