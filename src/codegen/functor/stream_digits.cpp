#include "codegen/functor/stream_digits.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "codegen/elementwise/aligned_accesses.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {

std::vector<ir::Expr> digits_in(ir::Expr root, ir::Expr stream) {
  std::vector<ir::Expr> digits;
  std::set<ir::Expr> seen;
  std::function<void(ir::Expr)> go = [&](ir::Expr e) {
    if (!e->depends_on(stream) || e->op == ir::ExprOp::Read || !seen.insert(e).second) return;
    for (ir::Expr arg : e->args) go(arg);
    if (e->op != ir::ExprOp::FloorDiv && e->op != ir::ExprOp::FloorMod) return;
    const bool of_digit = std::find(digits.begin(), digits.end(), e->args[0]) != digits.end();
    if ((e->args[0] == stream || of_digit) && is_size(e->args[1])) digits.push_back(e);
  };
  go(root);
  return digits;
}

int64_t last_digit(ir::Expr offset, ir::Expr stream) {
  for (ir::Expr digit : digits_in(offset, stream)) {
    const bool last = digit->op == ir::ExprOp::FloorMod && digit->args[0] == stream;
    if (last && digit->args[1]->is_constant()) return digit->args[1]->integer;
  }
  return 0;
}

void bind_digits(Emitter& emitter, const std::vector<ir::Expr>& roots, ir::Expr stream,
                 const std::string& position) {
  std::map<ir::Expr, std::string> names = {{stream, position}};
  for (ir::Expr root : roots) {
    for (ir::Expr digit : digits_in(root, stream)) {
      if (names.count(digit)) continue;
      const std::string name = emitter.fresh("digit");
      emitter.line(fmt::format(
          "const long long {} = static_cast<unsigned>({}) {} static_cast<unsigned>({});", name,
          names.at(digit->args[0]), digit->op == ir::ExprOp::FloorDiv ? "/" : "%",
          emitter.kernel().size(digit->args[1])));
      emitter.bind(digit, name);
      names[digit] = name;
    }
  }
}

// In a group that starts at a multiple g of the width w, and for multiples d of w, (g + v)/d is g/d
// and (g + v) mod d is g mod d + v, of which the first is a multiple of w.
std::optional<GroupedOffset> grouped_offset(ir::ExprPool& pool, ir::Expr offset, ir::Expr stream,
                                            int width) {
  GroupedOffset result;
  std::vector<std::pair<ir::Expr, ir::Expr>> parts;
  for (ir::Expr digit : digits_in(offset, stream)) {
    ir::Expr start = pool.axis("g", digit->args[1]);
    if (digit->args[0] == stream) result.units.push_back(digit->args[1]);
    const bool runs = digit->op == ir::ExprOp::FloorMod && digit->args[0] == stream;
    parts.emplace_back(digit,
                       runs ? pool.add(pool.mul(start, pool.integer(width)), stream) : start);
  }
  // Nested digits first, because they contain the others.
  std::reverse(parts.begin(), parts.end());
  ir::Expr within = pool.rewrite(offset, [&](ir::Expr e) -> ir::Expr {
    for (auto& [digit, value] : parts) {
      if (e == digit) return value;
    }
    return nullptr;
  });
  const auto affine = affine_in(pool, within, stream);
  if (!affine || !affine->stride->is_constant()) return std::nullopt;
  if (affine->stride->integer != 0 && affine->stride->integer != 1) return std::nullopt;
  result.stride = static_cast<int>(affine->stride->integer);
  if (result.stride == 0) return result;
  for (ir::Expr unit : offset_units(pool, affine->base)) result.units.push_back(unit);
  return result;
}

}  // namespace redfuser::codegen
