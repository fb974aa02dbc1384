#include "codegen/joined/find_block_maps.h"

#include <algorithm>

#include "codegen/joined/block_maps_joiner.h"

namespace redfuser::codegen {
namespace {

class BlockMapsFinder {
 public:
  BlockMapsFinder(const PlanView& view, size_t attention) : view_(view), attention_(attention) {}

  // The maps that the step may compute, ascending.
  std::vector<size_t> find() {
    // Steps that are far apart would keep memory for each other.
    constexpr int kMostPassed = 4;
    constexpr size_t kMostMaps = 4;
    int passed = 0;
    for (size_t i = attention_; i-- > 0 && passed <= kMostPassed && maps_.size() < kMostMaps;) {
      if (view_.is_alias(i)) continue;
      if (joins(i)) {
        maps_.insert(maps_.begin(), i);
        touched_.add(view_.touched[i]);
      } else {
        ++passed;
      }
    }
    return maps_;
  }

 private:
  bool joins(size_t step) const {
    const fuse::Step& map = view_.plan.steps[step];
    const Touched& own = view_.touched[step];
    return std::holds_alternative<fuse::MapStep>(map.kind) && view_.is_free(step) &&
           is_read(map.writes) && !depend(own, touched_) && may_move(step) && may_repeat(own);
  }

  bool is_read(const std::vector<ir::ValueId>& values) const {
    const std::vector<ir::ValueId>& reads = view_.plan.steps[attention_].reads;
    return std::all_of(values.begin(), values.end(), [&](ir::ValueId value) {
      return std::find(reads.begin(), reads.end(), value) != reads.end();
    });
  }

  // Whether the map's results and those of the steps up to the attention stay the same.
  bool may_move(size_t step) const {
    for (size_t i = step + 1; i < attention_; ++i) {
      const bool joined = std::find(maps_.begin(), maps_.end(), i) != maps_.end();
      if (!view_.is_alias(i) && !joined && view_.conflicts(view_.touched[step], i)) return false;
    }
    return true;
  }

  // Blocks compute an element again after others have written it. A run gives a map's result no
  // memory but that of an input which the map alone reads (runtime::may_write_in_place).
  bool may_repeat(const Touched& own) const {
    return std::none_of(own.writes.begin(), own.writes.end(), [&](ir::ValueId written) {
      return !view_.overwritten(written, own.reads, are_alike).empty();
    });
  }

  const PlanView& view_;
  const size_t attention_;
  std::vector<size_t> maps_;
  Touched touched_;  // by the maps
};

}  // namespace

void take_block_maps(const PlanView& view, std::vector<JoinedGroup>& groups) {
  std::vector<JoinedGroup> found;
  for (size_t i = 0; i < view.plan.steps.size(); ++i) {
    if (!std::holds_alternative<fuse::CascadeStep>(view.plan.steps[i].kind) || !view.is_free(i)) {
      continue;
    }
    JoinedGroup group{JoinedGroup::Kind::BlockMaps, BlockMapsFinder(view, i).find()};
    if (group.steps.empty()) continue;
    group.steps.push_back(i);
    std::vector<const fuse::Step*> steps;
    for (const size_t step : group.steps) steps.push_back(&view.plan.steps[step]);
    if (!has_block_maps(view.graph, steps, view.target)) continue;
    for (JoinedGroup& other : groups) {
      std::erase_if(other.steps, [&](size_t step) {
        return std::find(group.steps.begin(), group.steps.end(), step) != group.steps.end();
      });
    }
    found.push_back(std::move(group));
  }
  std::erase_if(groups, [](const JoinedGroup& group) { return group.steps.size() < 2; });
  groups.insert(groups.end(), found.begin(), found.end());
}

}  // namespace redfuser::codegen
