#include "cpu/convolution/quantized_epilogue.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "cpu/steps/block_epilogue.h"
#include "ir/channel_affine.h"

namespace redfuser::cpu {
namespace {

// The other argument of `e` than a constant, which goes to `number`; null where there is none.
ir::Expr beside_constant(ir::Expr e, double& number) {
  for (const size_t i : {0, 1}) {
    if (!e->args[i]->is_constant()) continue;
    number = e->args[i]->number;
    return e->args[1 - i];
  }
  return nullptr;
}

// Bounds and the zero point around a rounded number, which is returned; null for other expressions.
ir::Expr rounded_within(ir::Expr e, IntegerQuantizeArgs& each) {
  double number = 0;
  while (e != nullptr && (e->op == ir::ExprOp::Min || e->op == ir::ExprOp::Max)) {
    const bool least = e->op == ir::ExprOp::Max;
    e = beside_constant(e, number);
    if (least) {
      each.low = std::max(each.low, number);
    } else {
      each.high = std::min(each.high, number);
    }
  }
  if (e != nullptr && e->op == ir::ExprOp::Add) {
    e = beside_constant(e, each.zero);
  }
  return e != nullptr && e->op == ir::ExprOp::Round ? e->args[0] : nullptr;
}

// Whole numbers that the kernels take.
bool are_bytes(const IntegerQuantizeArgs& each, DType dtype) {
  const double low = dtype == DType::Int8 ? -128 : 0;
  const auto whole = [](double x) { return x == std::nearbyint(x); };
  return whole(each.zero) && whole(each.low) && whole(each.high) && each.low >= low &&
         each.high <= low + 255 && each.low <= each.high && std::abs(each.zero) <= 255;
}

// Of an expression over the sums.
std::optional<QuantizedRows> rows_of(const ir::Graph& graph, ir::Expr body, ir::Expr channel) {
  const bool byte = body->dtype == DType::Int8 || body->dtype == DType::UInt8;
  if (!byte || body->op != ir::ExprOp::Cast || body->args[0]->dtype != DType::Float32) return {};
  QuantizedRows rows;
  rows.each.low = -HUGE_VAL;
  rows.each.high = HUGE_VAL;
  const ir::Expr number = rounded_within(body->args[0], rows.each);
  if (number == nullptr || !are_bytes(rows.each, body->dtype)) return {};
  if (channel->op == ir::ExprOp::Axis && !channel->extent()->is_constant()) return {};
  const int64_t channels = channel->op == ir::ExprOp::Axis ? channel->extent()->integer : 1;
  const ir::ChannelAffineForms forms(graph, channel, channels, [](ir::Expr e) {
    return e->op == ir::ExprOp::Cast && e->dtype == DType::Float32 && is_product(e->args[0]);
  });
  auto affine = forms.of(number);
  if (!affine || affine->constant) return {};
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(affine->scale.begin(), affine->scale.end(), finite) ||
      !std::all_of(affine->shift.begin(), affine->shift.end(), finite)) {
    return {};
  }
  rows.scales = std::move(affine->scale);
  rows.offsets = std::move(affine->shift);
  rows.biases = {0};
  return rows;
}

// Whether all sums of the body lie within `head`. `seen` holds the expressions visited so far.
bool has_all_sums(ir::Expr body, ir::Expr head, std::unordered_set<ir::Expr>& seen) {
  if (body == head || !seen.insert(body).second) return true;
  if (is_product(body)) return false;
  return std::all_of(body->args.begin(), body->args.end(),
                     [&](ir::Expr arg) { return has_all_sums(arg, head, seen); });
}

}  // namespace

std::optional<QuantizedHead> quantized_head(const ir::Graph& graph,
                                            const fuse::OpaqueStep::Epilogue& epilogue) {
  std::optional<QuantizedHead> head;
  visit(epilogue.body, [&](ir::Expr e) {
    if (head) return;
    if (auto rows = rows_of(graph, e, epilogue.axes[1])) head = {e, std::move(*rows)};
  });
  std::unordered_set<ir::Expr> seen;
  if (head && !has_all_sums(epilogue.body, head->expr, seen)) return {};
  return head;
}

}  // namespace redfuser::cpu
