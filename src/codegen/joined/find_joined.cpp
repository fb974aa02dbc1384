#include "codegen/joined/find_joined.h"

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/joined/maps_joiner.h"
#include "codegen/joined/rows_joiner.h"

namespace redfuser::codegen {
namespace {

using Values = std::set<ir::ValueId>;

bool overlap(const Values& a, const Values& b) {
  return std::any_of(a.begin(), a.end(), [&](ir::ValueId value) { return b.count(value) > 0; });
}

// Owners of memory that steps read and write; constants are none.
struct Touched {
  Values reads, writes;

  void add(const Touched& other) {
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
  }
};

class Memory {
 public:
  Memory(const ir::Graph& graph, const fuse::Plan& plan) : graph_(graph), plan_(plan) {
    inputs_.insert(graph.inputs.begin(), graph.inputs.end());
    for (const ir::ValueId output : graph.outputs) outputs_.insert(plan.root(output));
  }

  Touched of(const fuse::Step& step) const {
    Touched touched;
    for (const ir::ValueId value : step.reads) add(value, touched.reads);
    for (const ir::ValueId value : step.writes) add(value, touched.writes);
    return touched;
  }

  // Whether two steps may not change places: one writes what the other one touches.
  bool depend(const Touched& a, const Touched& b) const {
    return overlap(a.writes, b.reads) || overlap(a.writes, b.writes) || overlap(a.reads, b.writes);
  }

  // The inputs among `reads` whose memory a run may give to this one of the written values.
  template <typename Alike>
  Values overwritten(ir::ValueId written, const Values& reads, const Alike& alike) const {
    Values result;
    if (outputs_.count(written) == 0) return result;
    for (const ir::ValueId read : reads) {
      if (inputs_.count(read) > 0 && alike(value(written), value(read))) result.insert(read);
    }
    return result;
  }

 private:
  const ir::Value& value(ir::ValueId id) const { return graph_.values[static_cast<size_t>(id)]; }

  void add(ir::ValueId id, Values& values) const {
    const ir::ValueId root = plan_.root(id);
    if (!value(root).is_constant()) values.insert(root);
  }

  const ir::Graph& graph_;
  const fuse::Plan& plan_;
  Values inputs_, outputs_;
};

bool are_alike(const ir::Value& a, const ir::Value& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

// Whether two values may have one type and the same sizes.
bool may_be_alike(const ir::Value& a, const ir::Value& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    const bool constant = a.shape[i]->is_constant() && b.shape[i]->is_constant();
    if (constant && a.shape[i] != b.shape[i]) return false;
  }
  return true;
}

// Shared by the finders.
struct PlanView {
  PlanView(const ir::Graph& of, const fuse::Plan& of_plan, const Target& on,
           const std::set<size_t>& of_host)
      : graph(of), plan(of_plan), target(on), on_host(of_host), memory(of, of_plan) {
    for (const fuse::Step& step : plan.steps) touched.push_back(memory.of(step));
  }

  bool is_alias(size_t step) const {
    return std::holds_alternative<fuse::AliasStep>(plan.steps[step].kind);
  }
  bool is_free(size_t step) const {
    return on_host.count(step) == 0 && plan.steps[step].binds.empty();
  }

  const ir::Graph& graph;
  const fuse::Plan& plan;
  const Target& target;
  const std::set<size_t>& on_host;
  const Memory memory;
  std::vector<Touched> touched;  // by step
};

class RowsFinder {
 public:
  explicit RowsFinder(const PlanView& view) : view_(view) {}

  // The product that takes in the rows.
  std::optional<size_t> product_of(size_t rows) const {
    const fuse::Step& step = view_.plan.steps[rows];
    if (!std::holds_alternative<fuse::CascadeStep>(step.kind) || !view_.is_free(rows)) {
      return std::nullopt;
    }
    Values touched = view_.touched[rows].reads;
    touched.insert(view_.touched[rows].writes.begin(), view_.touched[rows].writes.end());
    for (size_t i = rows + 1; i < view_.plan.steps.size(); ++i) {
      if (view_.is_alias(i) || !touches(i, touched)) continue;
      const bool joined = joins(rows, i) && !may_overwrite(rows, i);
      return joined ? std::optional(i) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool touches(size_t step, const Values& values) const {
    const Touched& touched = view_.touched[step];
    return overlap(touched.reads, values) || overlap(touched.writes, values);
  }

  bool joins(size_t rows, size_t number) const {
    const fuse::Step& step = view_.plan.steps[number];
    const auto* product = std::get_if<fuse::ProductStep>(&step.kind);
    if (product == nullptr || product->of_integers() || !view_.is_free(number)) return false;
    if (view_.target.append_of(product->value) != nullptr) return false;
    const auto* read = lines_of(*product);
    if (read == nullptr || is_read_elsewhere(number, static_cast<ir::ValueId>((*read)->integer))) {
      return false;
    }
    return has_thin_rows(view_.graph, view_.plan, view_.plan.steps[rows], step, view_.target);
  }

  // Whether an output of the graph that is written after the rows' place in the plan may be in the
  // memory of an input that they read (runtime::may_write_in_place).
  bool may_overwrite(size_t rows, size_t product) const {
    const Values& reads = view_.touched[rows].reads;
    for (size_t i = rows + 1; i <= product; ++i) {
      for (const ir::ValueId written : view_.touched[i].writes) {
        if (!view_.memory.overwritten(written, reads, may_be_alike).empty()) return true;
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
      if (conflicts(group, step)) {
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

  // Whether the steps of the group, computed with this one or after it, might read or leave other
  // values. They may read a state only before this one writes it: the runtime overwrites nothing
  // that a step still reads (may_write_in_place).
  bool conflicts(const Open& group, size_t step) const {
    const Touched& touched = view_.touched[step];
    if (view_.memory.depend(group.touched, touched)) return true;
    const Values& read = group.touched.reads;
    return std::any_of(touched.writes.begin(), touched.writes.end(), [&](ir::ValueId written) {
      const Values states = view_.memory.overwritten(written, touched.reads, are_alike);
      return !states.empty() &&
             std::includes(read.begin(), read.end(), states.begin(), states.end());
    });
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
  const RowsFinder finder(view);
  std::set<size_t> taken;  // a product has one thin matrix
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto product = finder.product_of(i);
    if (product && taken.insert(*product).second) {
      groups.push_back({JoinedGroup::Kind::ThinRows, {i, *product}});
    }
  }
  return groups;
}

}  // namespace redfuser::codegen
