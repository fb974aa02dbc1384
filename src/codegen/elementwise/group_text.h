// The text that computes a group of adjacent points of an axis: vector loads, elements, vector
// stores.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/elementwise/elementwise_kernel.h"

namespace redfuser::codegen {

// The text has in scope `first`, the group's first point, `valid`, the number of points from there
// to the end of the axis, and `vector`, whether groups are aligned: condition().
class GroupText {
 public:
  // Groups of `width` points of the axis `inner`. All must outlive this.
  GroupText(Emitter& emitter, const std::vector<Store>& stores, ir::Expr inner, int width)
      : pool_(emitter.pool()),
        kernel_(emitter.kernel()),
        emitter_(emitter),
        stores_(stores),
        inner_(inner),
        width_(width) {}

  // Element v of the group has `leaf` in array[v].
  void bind(ir::Expr leaf, const std::string& array) { loaded_.emplace_back(leaf, array); }
  // Adds the text to the emitter's scope.
  void add();
  // Once the text is there.
  std::string condition();

 private:
  // The offset of point 0, if points are consecutive elements; else null.
  ir::Expr first_of(ir::Expr offset);
  void note_aligned(const std::string& buffer);
  void require(const std::string& buffer, ir::Expr base);
  // That of a choice which all bodies are, the same for all points of a group.
  ir::Expr common_condition() const;
  // The text where the bodies are the arguments of this number of the choices.
  std::string side(size_t number);
  void load_groups();

  ir::ExprPool& pool_;
  KernelText& kernel_;
  Emitter& emitter_;
  const std::vector<Store>& stores_;
  ir::Expr inner_;
  int width_;
  std::vector<std::pair<ir::Expr, std::string>> loaded_;
  std::vector<std::string> aligned_;
  std::vector<ir::Expr> units_;
};

}  // namespace redfuser::codegen
