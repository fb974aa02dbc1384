#include "codegen/functor/invariant_parts.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "codegen/text/type_text.h"

namespace redfuser::codegen {
namespace {

void find_divisors(const std::vector<ir::Expr>& roots, InvariantPart& part) {
  for (ir::Expr root : roots) {
    visit(root, [&](ir::Expr e) {
      part.divides |= e->op == ir::ExprOp::Div && e->dtype == part.expr->dtype &&
                      value_type(e->dtype) == "float" && e->args[1] == part.expr;
    });
  }
}

}  // namespace

std::vector<InvariantPart> invariant_parts(const std::vector<ir::Expr>& roots,
                                           const std::vector<ir::Expr>& axes, PartsWith what,
                                           bool fast) {
  const bool leaves = what == PartsWith::ReadsAndLeaves || what == PartsWith::Anything;
  const bool coordinates = what == PartsWith::ReadsAndCoordinates || what == PartsWith::Anything;
  std::vector<InvariantPart> parts;
  std::set<ir::Expr> seen;
  const auto varies = [&](ir::Expr e) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](ir::Expr axis) { return e->depends_on(axis); });
  };
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second || e->is_constant() || e->op == ir::ExprOp::Axis || is_size(e)) {
      return;
    }
    if (!varies(e) && (leaves || !e->has_leaf)) {
      if (coordinates || e->has_leaf || e->has_read) parts.push_back({e});
      return;
    }
    if (e->op == ir::ExprOp::Read) return;
    for (ir::Expr arg : e->args) go(arg);
  };
  for (ir::Expr root : roots) go(root);
  for (InvariantPart& part : parts) {
    if (fast) find_divisors(roots, part);
  }
  return parts;
}

void Members::add(std::string_view type, const std::string& name) {
  if (type == type_) {
    text_ += ", " + name;
    return;
  }
  text_ += fmt::format("{}{} {}", type_.empty() ? "" : ";\n", type, name);
  type_ = type;
}

std::string declare_parts(const std::vector<InvariantPart>& parts, const std::string& name) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    text += fmt::format("{} {}{};\n", value_type(parts[i].expr->dtype), name, i);
    if (parts[i].divides) text += fmt::format("Divisor by{};\n", i);
  }
  return text;
}

void set_parts(Emitter& emitter, const std::vector<InvariantPart>& parts, const std::string& object,
               const std::string& name) {
  for (size_t i = 0; i < parts.size(); ++i) {
    emitter.line(fmt::format("{}.{}{} = {};", object, name, i, emitter.emit(parts[i].expr)));
    if (!parts[i].divides) continue;
    emitter.line(fmt::format("{0}.by{2} = divisor_of({0}.{1}{2});", object, name, i));
  }
}

void bind_parts(Emitter& emitter, const std::vector<InvariantPart>& parts,
                const std::string& object, const std::string& name) {
  for (size_t i = 0; i < parts.size(); ++i) {
    emitter.bind(parts[i].expr, fmt::format("{}.{}{}", object, name, i));
    if (parts[i].divides) emitter.bind_divisor(parts[i].expr, fmt::format("{}.by{}", object, i));
  }
}

}  // namespace redfuser::codegen
