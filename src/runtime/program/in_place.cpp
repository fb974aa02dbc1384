#include "runtime/program/in_place.h"

#include <algorithm>

namespace redfuser::runtime {
namespace {

size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

class InPlace {
 public:
  InPlace(const CompiledProgram& program, ir::ValueId input,
          const std::function<size_t(size_t)>& place_of)
      : program_(program), input_(input), place_of_(place_of) {}

  bool allows(ir::ValueId output) const {
    const ir::ValueId target = root(output);
    const std::vector<fuse::Step>& steps = program_.plan.steps;
    const auto writer = std::find_if(steps.begin(), steps.end(), [&](const fuse::Step& step) {
      return std::find(step.writes.begin(), step.writes.end(), target) != step.writes.end() &&
             !std::holds_alternative<fuse::AliasStep>(step.kind);
    });
    if (writer == steps.end() || !reads_its_place(*writer, target)) return false;
    if (std::any_of(steps.begin(), steps.end(),
                    [&](const fuse::Step& step) { return reads(step) && writes_list(step); })) {
      return false;
    }
    const auto written = static_cast<size_t>(writer - steps.begin());
    bool read_later = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool later = i > written || (i < written && place_of(i) >= place_of(written));
      if (std::holds_alternative<fuse::AliasStep>(steps[i].kind)) continue;
      read_later = read_later || (later && reads(steps[i]));
    }
    const std::vector<ir::ValueId>& outputs = program_.graph().outputs;
    return !read_later && std::none_of(outputs.begin(), outputs.end(),
                                       [&](ir::ValueId id) { return root(id) == input_; });
  }

 private:
  ir::ValueId root(ir::ValueId id) const { return program_.plan.root(id); }
  size_t place_of(size_t step) const { return place_of_ ? place_of_(step) : step; }

  bool reads(const fuse::Step& step) const {
    return std::any_of(step.reads.begin(), step.reads.end(),
                       [&](ir::ValueId id) { return root(id) == input_; });
  }

  // Such a list shows the input itself to whoever reads it.
  bool writes_list(const fuse::Step& step) const {
    return std::any_of(step.writes.begin(), step.writes.end(), [&](ir::ValueId id) {
      return is_list(program_.graph().values[index(id)].dtype);
    });
  }

  bool reads_its_place(const fuse::Step& step, ir::ValueId target) const {
    if (!reads(step)) return true;
    if (const auto* map = std::get_if<fuse::MapStep>(&step.kind))
      return reads_its_place(*map, target);
    const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
    if (opaque == nullptr) return false;
    const ir::Node& node = program_.graph().nodes[static_cast<size_t>(opaque->node)];
    if (!node.op.starts_with("Scatter") || root(node.inputs[0]) != input_) return false;
    return std::none_of(node.inputs.begin() + 1, node.inputs.end(),
                        [&](ir::ValueId id) { return root(id) == input_; });
  }

  bool reads_its_place(const fuse::MapStep& map, ir::ValueId target) const {
    const auto& shape = program_.graph().values[index(target)].shape;
    if (program_.graph().values[index(input_)].shape != shape) return false;
    bool same = true;
    for (const fuse::MapStep::Output& output : map.outputs) {
      visit(output.body, [&](ir::Expr read) {
        if (read->op != ir::ExprOp::Read || root(static_cast<ir::ValueId>(read->integer)) != input_)
          return;
        same = same && read->integer == input_ && same_place(read->args, map.axes);
      });
    }
    return same;
  }

  // A dimension of one element is read at 0.
  static bool same_place(const std::vector<ir::Expr>& at, const std::vector<ir::Expr>& axes) {
    if (at.size() != axes.size()) return false;
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] == axes[i]) continue;
      if (!axes[i]->extent()->is_constant(1) || !at[i]->is_constant(0)) return false;
    }
    return true;
  }

  const CompiledProgram& program_;
  const ir::ValueId input_;
  const std::function<size_t(size_t)>& place_of_;
};

}  // namespace

bool may_write_in_place(const CompiledProgram& program, ir::ValueId output, ir::ValueId input,
                        const std::function<size_t(size_t)>& place_of) {
  return InPlace(program, input, place_of).allows(output);
}

}  // namespace redfuser::runtime
