// The text that computes a Group of src/device/maps/group.cuh: loads of adjacent elements, the
// points, stores.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/elementwise/aligned_accesses.h"
#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {

// The text has the Group in scope, as `group`.
class GroupText {
 public:
  // Groups of points of `axes` in row-major order; the emitter must outlive this. `small`: as
  // bind_coordinates has it.
  GroupText(Emitter& emitter, std::vector<ir::Expr> axes, bool small = false)
      : emitter_(emitter), accesses_(emitter.kernel()), axes_(std::move(axes)), small_(small) {}

  // The point v has `leaf` as this text.
  void bind(ir::Expr leaf, const std::string& text) { leaves_.emplace_back(leaf, text); }
  // Loads what `root` reads of adjacent elements, where `wanted`. Declares the values in place, or
  // those of Tile::kWidth points in `declared`.
  void load(ir::Expr root, const std::function<bool(ir::Expr)>& wanted = {},
            std::string* declared = nullptr);
  // A loop over the points, whose statements for the point v, at `at`, element() adds.
  void each(const std::function<void()>& element);
  // Computes the stores and stores them; `bind` names what they use in the scope of a point.
  void write(const std::vector<Store>& stores, const std::function<void()>& bind = {});
  // The same with their loads.
  void compute(const std::vector<Store>& stores);

  // The offset of point 0, if elements of points are adjacent; else null.
  ir::Expr first_of(ir::Expr offset) const;
  // The loads and stores so far, and whether they are aligned for groups of `width` points.
  const AlignedAccesses& accesses() const { return accesses_; }
  std::string condition(int width) const;

 private:
  bool is_bound(ir::Expr leaf) const;
  // The condition of a choice that all bodies are, the same for all points of a group. Null for
  // other bodies, for a condition of what each point is bound to, and for one that is loaded: the
  // loads of both sides would wait for it.
  ir::Expr common_condition(const std::vector<Store>& stores) const;
  // Those of a choice that all stores are, on one side of it.
  std::string side(std::vector<Store> stores, size_t number);

  Emitter& emitter_;
  AlignedAccesses accesses_;
  std::vector<ir::Expr> axes_;
  bool small_;
  std::vector<std::pair<ir::Expr, std::string>> leaves_;
};

}  // namespace redfuser::codegen
