#include "codegen/functor/invariant_parts.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "codegen/text/type_text.h"

namespace redfuser::codegen {
namespace {

bool divides(ir::Expr part, const std::vector<ir::Expr>& roots) {
  bool found = false;
  for (ir::Expr root : roots) {
    visit(root, [&](ir::Expr e) {
      found |= e->op == ir::ExprOp::Div && e->dtype == part->dtype &&
               value_type(e->dtype) == "float" && e->args[1] == part;
    });
  }
  return found;
}

}  // namespace

std::vector<InvariantPart> invariant_parts(const std::vector<ir::Expr>& roots,
                                           const std::vector<ir::Expr>& axes, PartsWith what,
                                           Quotients quotients) {
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
    if (quotients == Quotients::Plain || !divides(part.expr, roots)) continue;
    part.divisor = quotients == Quotients::Fast ? "Divisor" : "ExactDivisor";
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
    if (!parts[i].divisor.empty()) text += fmt::format("{} by{};\n", parts[i].divisor, i);
  }
  return text;
}

void set_parts(Emitter& emitter, const std::vector<InvariantPart>& parts, const std::string& object,
               const std::string& name) {
  for (size_t i = 0; i < parts.size(); ++i) {
    emitter.line(fmt::format("{}.{}{} = {};", object, name, i, emitter.emit(parts[i].expr)));
    if (parts[i].divisor.empty()) continue;
    emitter.line(fmt::format("{0}.by{2} = {3}({0}.{1}{2});", object, name, i,
                             parts[i].divisor == "Divisor" ? "divisor_of" : "exact_divisor_of"));
  }
}

void bind_parts(Emitter& emitter, const std::vector<InvariantPart>& parts,
                const std::string& object, const std::string& name) {
  for (size_t i = 0; i < parts.size(); ++i) {
    emitter.bind(parts[i].expr, fmt::format("{}.{}{}", object, name, i));
    if (!parts[i].divisor.empty())
      emitter.bind_divisor(parts[i].expr, fmt::format("{}.by{}", object, i));
  }
}

}  // namespace redfuser::codegen
