#include "codegen/core/emitter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/low_bit.h"
#include "codegen/text/integer_text.h"
#include "codegen/text/operation_text.h"
#include "codegen/text/scalar_text.h"
#include "ir/scalars/operations.h"

namespace redfuser::codegen {

namespace {

constexpr int64_t kSumPart = 4096;
constexpr int kWarp = 32;

// Whether a sum of floats is too long to add one by one.
bool sums_in_parts(ir::Expr reduce) {
  const bool sum = reduce->reduction == ir::Reduction::Sum && is_float(reduce->dtype);
  return sum && !(reduce->extent()->is_constant() && reduce->extent()->integer <= kSumPart);
}

std::string constant_text(ir::Expr expr) {
  if (is_integer(expr->dtype)) return word_text(expr->dtype, expr->integer);
  return literal(is_float(expr->dtype) ? expr->number : static_cast<double>(expr->integer),
                 expr->dtype);
}

// On the host a maximum of sizes stands for a broadcast, which is empty where either is; indices
// are computed on the device.
bool has_maximum(ir::Expr expr) {
  bool found = false;
  visit(expr, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Max; });
  return found;
}

// x of a cast that clamps x to the largest values of an 8-bit float, in either order; else null.
ir::Expr saturated_operand(ir::Expr cast) {
  const double largest = low_bit_maximum(cast->dtype);
  ir::Expr x = cast->args[0];
  bool below = false, above = false;
  for (int i = 0; i < 2; ++i) {
    const bool low = x->op == ir::ExprOp::Max, high = x->op == ir::ExprOp::Min;
    if (!low && !high) return nullptr;
    const double bound = low ? -largest : largest;
    const auto is_bound = [&](ir::Expr arg) {
      return arg->is_constant() && is_float(arg->dtype) && arg->number == bound;
    };
    const bool first = is_bound(x->args[0]);
    if (x->args.size() != 2 || (!first && !is_bound(x->args[1]))) return nullptr;
    (low ? below : above) = true;
    x = x->args[first ? 1 : 0];
  }
  return below && above ? x : nullptr;
}

bool is_single(ir::Expr e) { return is_float(e->dtype) && e->dtype != DType::Float64; }

// E8M0 rounds up, and has no sign.
bool rounds_to_code(ir::Expr e) {
  return e->op == ir::ExprOp::Cast && is_low_bit_float(e->dtype) && e->dtype != DType::Float8E8M0 &&
         is_single(e->args[0]);
}

// A saturating cast is one conversion, and a quotient in it needs no division.
std::string code_text(ir::Expr cast, const std::function<std::string(ir::Expr)>& text_of) {
  ir::Expr x = cast->args[0], inner = saturated_operand(cast);
  if (inner && is_single(inner)) x = inner;
  const bool divides = x->op == ir::ExprOp::Div;
  const std::string value =
      divides ? fmt::format("code_quotient({}, {})", text_of(x->args[0]), text_of(x->args[1]))
              : text_of(x);
  return fmt::format("to_low_bit{}<{}>({})", x == inner ? "_saturated" : "",
                     value_type(cast->dtype), value);
}

struct HalfTurns {
  ir::Expr factor;
  double number;
};

// The angle of a sine or cosine, where that is a factor times half turns in double precision, as no
// number of a float graph is.
std::optional<HalfTurns> half_turns_of(ir::Expr expr) {
  if (expr->op != ir::ExprOp::Sin && expr->op != ir::ExprOp::Cos) return std::nullopt;
  const ir::Expr angle = expr->args[0];
  if (angle->op != ir::ExprOp::Mul || angle->args.size() != 2) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const ir::Expr number = angle->args[i];
    if (number->op != ir::ExprOp::Constant) continue;
    const double turns = std::round(number->number / std::numbers::pi);
    if (turns != 0 && turns * std::numbers::pi == number->number) {
      return HalfTurns{angle->args[1 - i], turns};
    }
  }
  return std::nullopt;
}

// Empty for operations without a fast form.
std::string fast_text(ir::Expr expr, const std::vector<std::string>& args) {
  if (expr->op == ir::ExprOp::Div && expr->args[0]->is_constant()) {
    return fmt::format("{} * ptx_reciprocal({})", args[0], args[1]);
  }
  const std::string_view pattern = ir::scalar_op(expr->op).cuda_fast;
  return pattern.empty() ? "" : scalar_text(pattern, expr->dtype, args);
}

constexpr size_t kLongestNested = 64;

// A name, a literal, a call, or text in parentheses.
bool is_operand(const std::string& text) {
  const size_t open = text.find_first_of(" (");
  if (open == std::string::npos) return true;
  if (text[open] == ' ') return false;
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0) return i + 1 == text.size();
  }
  return false;
}

// Whether the text of an operation evaluates the argument under a condition. Compilers move what
// stands there alone, loads too, behind a branch.
bool is_conditional(ir::ExprOp op, size_t argument) {
  return op == ir::ExprOp::And || op == ir::ExprOp::Or ||
         (op == ir::ExprOp::Select && argument > 0);
}

// Of arguments in parentheses, a call needs no second ones.
std::string without_double_parentheses(std::string text, const std::vector<std::string>& args) {
  for (const std::string& arg : args) {
    if (arg.empty() || arg[0] != '(') continue;
    const size_t at = text.find("(" + arg + ")");
    if (at != std::string::npos) text.replace(at, arg.size() + 2, arg);
  }
  return text;
}

}  // namespace

Emitter::Emitter(KernelText& kernel) : kernel_(kernel) { open(); }

void Emitter::open() { scopes_.emplace_back(); }

std::string Emitter::close() {
  std::string text = std::move(scopes_.back().text);
  scopes_.pop_back();
  return text;
}

void Emitter::line(const std::string& text) {
  std::string& to = scopes_.back().text;
  to += text;
  if (!text.empty() && text.back() != '\n') to += "\n";
}

void Emitter::bind(ir::Expr expr, const std::string& name) { scopes_.back().names[expr] = name; }

void Emitter::bind_divisor(ir::Expr expr, const std::string& name) {
  scopes_.back().divisors[expr] = name;
}

void Emitter::nest(const std::vector<ir::Expr>& roots) {
  std::map<ir::Expr, int> uses;
  std::set<ir::Expr> seen;
  for (ir::Expr root : roots) {
    if (!root) continue;
    ++uses[root];
    visit(root, [&](ir::Expr e) {
      if (!seen.insert(e).second) return;
      for (ir::Expr arg : e->args) ++uses[arg];
    });
  }
  for (const auto& [expr, count] : uses) {
    if (count == 1) nested_.insert(expr);
  }
}

std::string Emitter::fresh(const std::string& hint) {
  return fmt::format("{}{}", hint, counters_[hint]++);
}

std::string Emitter::emit(ir::Expr expr) {
  Named value = named(expr);
  // An invariant stays in its scope.
  if (is_loose(expr) && value.depth + 1 < scopes_.size()) declare(expr, value);
  return value.text;
}

std::string Emitter::emit_as(ir::Expr expr, DType dtype) {
  const std::string text = emit(expr);
  if (value_type(expr->dtype) == value_type(dtype)) return text;
  return fmt::format("static_cast<{}>({})", value_type(dtype), text);
}

std::string Emitter::emit_whole(ir::Expr expr, DType dtype) {
  const std::string text = emit_as(expr, dtype);
  const bool enclosed = text[0] == '(' && is_operand(text) && nested_.contains(expr);
  return enclosed ? text.substr(1, text.size() - 2) : text;
}

Emitter::Named Emitter::known(ir::Expr expr) const {
  for (size_t depth = scopes_.size(); depth-- > 0;) {
    auto found = scopes_[depth].names.find(expr);
    if (found != scopes_[depth].names.end()) return {found->second, depth};
  }
  return {"", 0};
}

Emitter::Named Emitter::named(ir::Expr expr) {
  if (Named found = known(expr); !found.text.empty()) return found;
  if (expr->op == ir::ExprOp::Constant) return {constant_text(expr), 0};
  if (is_size(expr) && !has_maximum(expr)) return {kernel_.size(expr), 0};
  switch (expr->op) {
    case ir::ExprOp::Read:
      return read(expr);
    case ir::ExprOp::Reduce:
      return reduce(expr);
    case ir::ExprOp::Axis:
    case ir::ExprOp::Leaf:
    case ir::ExprOp::Symbol:
      internal_error("codegen: {} is not bound", to_string(pool(), expr));
    default:
      return operation(expr);
  }
}

Emitter::Named Emitter::fast_quotient(ir::Expr expr, const Named& dividend, const Named& divisor) {
  auto& names = scopes_[divisor.depth].divisors;
  auto found = names.find(expr->args[1]);
  if (found == names.end()) {
    found = names.emplace(expr->args[1], fresh("by")).first;
    scopes_[divisor.depth].text +=
        fmt::format("const Divisor {} = divisor_of({});\n", found->second, divisor.text);
  }
  Named value = {fmt::format("divide({}, {})", dividend.text, found->second), dividend.depth};
  if (!nested_.contains(expr)) declare(expr, value);
  return value;
}

// Half turns are exact in sinpi and cospi, which take no slow path for large angles either.
Emitter::Named Emitter::function_of_turn(ir::Expr expr, ir::Expr of, double half_turns) {
  const Named factor = named(of);
  kernel().note_type(expr->dtype);
  Named value = {fmt::format("{}pi{}({} * {})", expr->op == ir::ExprOp::Sin ? "sin" : "cos",
                             expr->dtype == DType::Float64 ? "" : "f",
                             literal(half_turns, expr->dtype), factor.text),
                 factor.depth};
  declare(expr, value);
  return value;
}

Emitter::Named Emitter::operation(ir::Expr expr) {
  if (const auto angle = half_turns_of(expr)) {
    return function_of_turn(expr, angle->factor, angle->number);
  }
  std::vector<std::string> args;
  size_t depth = 0;
  if (rounds_to_code(expr)) {
    const std::string text = code_text(expr, [&](ir::Expr e) {
      const Named value = named(e);
      depth = std::max(depth, value.depth);
      return value.text;
    });
    kernel().note_type(expr->dtype);
    const std::string name = fresh("t");
    scopes_[depth].text += fmt::format("const {} {} = {};\n", value_type(expr->dtype), name, text);
    scopes_[depth].names[expr] = name;
    return {name, depth};
  }
  std::vector<Named> values;
  for (ir::Expr arg : expr->args) {
    const Named value = named(arg);
    values.push_back(value);
    args.push_back(value.text);
    depth = std::max(depth, value.depth);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const bool kept = values[i].depth == depth && !is_conditional(expr->op, i);
    if (kept || !is_loose(expr->args[i])) continue;
    declare(expr->args[i], values[i]);
    args[i] = values[i].text;
  }
  const bool single = is_float(expr->dtype) && expr->dtype != DType::Float64;
  // A divisor of an outer scope may have its reciprocal there.
  if (single && expr->op == ir::ExprOp::Div && values[0].depth > values[1].depth &&
      (fast_math_ || scopes_[values[1].depth].divisors.contains(expr->args[1]))) {
    return fast_quotient(expr, values[0], values[1]);
  }
  kernel().note_type(expr->dtype);
  for (ir::Expr arg : expr->args) kernel().note_type(arg->dtype);
  if (expr->op == ir::ExprOp::Cast) {
    // A cast between types that are computed in the same type needs no statement.
    const std::string text = operation_text(expr, args, fast_exp_);
    if (text == args[0]) return {text, depth};
  }
  std::string text = fast_math_ && single ? fast_text(expr, args) : "";
  if (text.empty()) text = operation_text(expr, args, fast_exp_);
  if (!nested_.empty()) text = without_double_parentheses(text, args);
  Named value = {std::move(text), depth};
  if (nested_.contains(expr) && value.text.size() <= kLongestNested) {
    if (!is_operand(value.text)) value.text = fmt::format("({})", value.text);
  } else {
    declare(expr, value);
  }
  return value;
}

// Whether the value of an expression is text without a name.
bool Emitter::is_loose(ir::Expr expr) const {
  const bool computed = expr->op != ir::ExprOp::Constant && expr->op != ir::ExprOp::Read &&
                        !(is_size(expr) && !has_maximum(expr));
  return computed && nested_.contains(expr) && known(expr).text.empty();
}

// Makes the value a variable of the scope that it belongs to.
void Emitter::declare(ir::Expr expr, Named& value) {
  std::string name = fresh("t");
  scopes_[value.depth].text +=
      fmt::format("const {} {} = {};\n", value_type(expr->dtype), name, value.text);
  scopes_[value.depth].names[expr] = name;
  value.text = std::move(name);
}

Emitter::Named Emitter::read(ir::Expr expr) {
  RF_CHECK(expr->args.size() == 1, "codegen: a read is not flat");
  const Named offset = named(expr->args[0]);
  const std::string name = fresh("x");
  const std::string text =
      expr->integer < 0 ? ranked_reads_(expr, offset.text)
                        : fmt::format("load({}, {})", kernel_.buffer(expr->integer), offset.text);
  scopes_[offset.depth].text +=
      fmt::format("const {} {} = {};\n", value_type(expr->dtype), name, text);
  scopes_[offset.depth].names[expr] = name;
  return {name, offset.depth};
}

// The innermost scope that binds something on which a reduction depends.
size_t Emitter::depth_of_free(ir::Expr expr) const {
  size_t depth = 0;
  std::set<ir::Expr> seen;
  std::vector<ir::Expr> bound;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!seen.insert(e).second) return;
    if (e != expr) {
      if (Named found = known(e); !found.text.empty()) {
        depth = std::max(depth, found.depth);
        return;
      }
    }
    for (ir::Expr arg : e->args) {
      if (e->op == ir::ExprOp::Reduce && arg == e->bound_axis()) {
        go(arg->args[0]);
      } else {
        go(arg);
      }
    }
  };
  go(expr);
  return depth;
}

Emitter::Named Emitter::reduce(ir::Expr expr) {
  const size_t depth = depth_of_free(expr);
  const std::string extent = emit(expr->extent());
  const bool ranks = picks_element(expr->reduction);
  const std::string rank = !ranks ? "" : expr->args.size() > 2 ? emit(expr->args[2]) : "0ll";
  std::vector<Scope> inner(std::make_move_iterator(scopes_.begin() + static_cast<long>(depth) + 1),
                           std::make_move_iterator(scopes_.end()));
  scopes_.resize(depth + 1);
  const bool warp = warp_reductions_ && reduce_depth_ == 0 && !ranks;
  const std::string term = term_of(expr);
  kernel().note_terms();
  const std::string name = fresh("red");
  if (ranks) {
    const std::string best = fresh("best");
    const bool index = expr->dtype == DType::Int64 && (expr->integer || is_arg(expr->reduction));
    line(fmt::format("const auto {} = ranked_term<{}, {}>({}, {}, {});", best,
                     wants_large(expr->reduction), value_type(expr->body()->dtype), rank, extent,
                     term));
    line(fmt::format("const {} {} = {}.index < 0 ? 0 : {}.{};", value_type(expr->dtype), name, best,
                     best, index ? "index" : "value"));
  } else {
    line(fmt::format("const {0} {1} = reduce_terms<{2}, {3}, {4}, {0}>({5}, {6}, {7});",
                     value_type(expr->dtype), name, combiner_of(expr->reduction), warp ? kWarp : 1,
                     sums_in_parts(expr) ? kSumPart : 0, identity_of(expr->reduction, expr->dtype),
                     extent, term));
  }
  scopes_[depth].names[expr] = name;
  for (Scope& scope : inner) scopes_.push_back(std::move(scope));
  return {name, depth};
}

// A function of the bound axis.
std::string Emitter::term_of(ir::Expr reduce) {
  const std::string index = fresh("i");
  open();
  bind(reduce->bound_axis(), index);
  ++reduce_depth_;
  const bool ranks = picks_element(reduce->reduction);
  const std::string value = emit_as(reduce->body(), ranks ? reduce->body()->dtype : reduce->dtype);
  --reduce_depth_;
  line(fmt::format("return {};", value));
  return fmt::format("[&](long long {}) {{\n{}}}", index, close());
}

}  // namespace redfuser::codegen
