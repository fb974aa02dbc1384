#include "cpu/convolution/quantized_epilogue.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "cpu/steps/block_epilogue.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"
#include "ir/channel_affine.h"

namespace redfuser::cpu {
namespace {

bool is_byte(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

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
template <typename Numbers>
ir::Expr rounded_within(ir::Expr e, Numbers& each) {
  double number = 0;
  each.low = -HUGE_VAL;
  each.high = HUGE_VAL;
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
template <typename Numbers>
bool are_bytes(const Numbers& each, DType dtype) {
  const double low = dtype == DType::Int8 ? -128 : 0;
  const auto whole = [](double x) { return x == std::nearbyint(x); };
  return whole(each.zero) && whole(each.low) && whole(each.high) && each.low >= low &&
         each.high <= low + 255 && each.low <= each.high && std::abs(each.zero) <= 255;
}

// What an expression adds to a sum of int32; null where it is another one.
ir::Expr beside_sum(ir::Expr e) {
  if (e->op != ir::ExprOp::Add || e->dtype != DType::Int32) return nullptr;
  for (const size_t i : {0, 1}) {
    if (is_product(e->args[i])) return e->args[1 - i];
  }
  return nullptr;
}

// Whether a sum of so many products of differences of bytes, plus a bias, is one of int32.
bool are_exact(const std::vector<double>& biases, int64_t terms) {
  constexpr double kProduct = 1 << 16, kSum = 1u << 31;
  const double rest = kSum - kProduct * static_cast<double>(terms);
  return std::all_of(biases.begin(), biases.end(), [&](double b) { return std::abs(b) < rest; });
}

// Of an expression over the sums.
std::optional<QuantizedRows> rows_of(const ir::Graph& graph, ir::Expr body, ir::Expr channel,
                                     int64_t terms) {
  if (!is_byte(body->dtype) || body->op != ir::ExprOp::Cast) return {};
  if (body->args[0]->dtype != DType::Float32) return {};
  QuantizedRows rows;
  const ir::Expr number = rounded_within(body->args[0], rows.each);
  if (number == nullptr || !are_bytes(rows.each, body->dtype)) return {};
  if (channel->op == ir::ExprOp::Axis && !channel->extent()->is_constant()) return {};
  const int64_t channels = channel->op == ir::ExprOp::Axis ? channel->extent()->integer : 1;
  ir::Expr bias = nullptr;
  const ir::ChannelAffineForms forms(graph, channel, channels, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Cast || e->dtype != DType::Float32) return false;
    if (is_product(e->args[0])) return bias == nullptr;
    ir::Expr added = beside_sum(e->args[0]);
    if (added == nullptr || (bias != nullptr && bias != added)) return false;
    bias = added;
    return true;
  });
  auto affine = forms.of(number);
  if (!affine || affine->constant) return {};
  if (bias != nullptr) {
    const auto biases = forms.constant_of(bias);
    if (!biases || !are_exact(biases->shift, terms)) return {};
    for (size_t c = 0; c < affine->shift.size(); ++c) {
      affine->shift[c] += affine->scale[c] * biases->shift[c];
    }
  }
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(affine->scale.begin(), affine->scale.end(), finite) ||
      !std::all_of(affine->shift.begin(), affine->shift.end(), finite)) {
    return {};
  }
  rows.scales = std::move(affine->scale);
  rows.offsets = std::move(affine->shift);
  return rows;
}

// first · head + second · other + offset, where the other value's codes are read at `axes`.
class SumOfCodes {
 public:
  SumOfCodes(ir::Expr head, const std::vector<ir::Expr>& axes) : head_(head), axes_(axes) {}

  double first = 0, second = 0, offset = 0;
  ir::ValueId value = ir::kAbsent;

  // Adds e · factor; false where that has another form.
  bool add(ir::Expr e, double factor) {
    if (e->dtype != DType::Float32) return false;
    if (e->is_constant()) {
      offset += e->number * factor;
      return true;
    }
    switch (e->op) {
      case ir::ExprOp::Add:
        return add(e->args[0], factor) && add(e->args[1], factor);
      case ir::ExprOp::Sub:
        return add(e->args[0], factor) && add(e->args[1], -factor);
      case ir::ExprOp::Mul: {
        double number = 0;
        const ir::Expr other = beside_constant(e, number);
        return other != nullptr && add(other, factor * number);
      }
      case ir::ExprOp::Div:
        return e->args[1]->is_constant() && add(e->args[0], factor / e->args[1]->number);
      case ir::ExprOp::Cast:
        return add_code(e->args[0], factor);
      default:
        return false;
    }
  }

 private:
  // A code, or its difference from a zero point.
  bool add_code(ir::Expr e, double factor) {
    if (e->op == ir::ExprOp::Sub && e->dtype == DType::Int32 && e->args[1]->is_constant()) {
      offset -= static_cast<double>(e->args[1]->integer) * factor;
      e = e->args[0];
    }
    while (e->op == ir::ExprOp::Cast && e->dtype == DType::Int32) e = e->args[0];
    if (e == head_) {
      first += factor;
      return true;
    }
    if (!is_byte(e->dtype) || e->op != ir::ExprOp::Read || e->integer < 0 || e->args != axes_)
      return false;
    const auto read = static_cast<ir::ValueId>(e->integer);
    if (value != ir::kAbsent && value != read) return false;
    value = read;
    second += factor;
    return true;
  }

  ir::Expr head_;
  const std::vector<ir::Expr>& axes_;
};

// Whether all sums of the body lie within `head`. `seen` holds the expressions visited so far.
bool has_all_sums(ir::Expr body, ir::Expr head, std::unordered_set<ir::Expr>& seen) {
  if (body == head || !seen.insert(body).second) return true;
  if (is_product(body)) return false;
  return std::all_of(body->args.begin(), body->args.end(),
                     [&](ir::Expr arg) { return has_all_sums(arg, head, seen); });
}

// Whether `head` alone decides the expression.
bool is_function_of(ir::Expr e, ir::Expr head, std::unordered_set<ir::Expr>& seen) {
  if (e == head || e->is_constant() || !seen.insert(e).second) return true;
  if (e->args.empty() || e->op == ir::ExprOp::Read || e->op == ir::ExprOp::Reduce) return false;
  return std::all_of(e->args.begin(), e->args.end(),
                     [&](ir::Expr arg) { return is_function_of(arg, head, seen); });
}

}  // namespace

std::optional<CodeTable> table_after(const fuse::OpaqueStep::Epilogue& epilogue, ir::Expr head) {
  std::unordered_set<ir::Expr> seen;
  if (!is_byte(epilogue.body->dtype) || !is_function_of(epilogue.body, head, seen)) return {};
  ir::ExprPool pool;
  Specializer specializer(pool, {});
  const auto words =
      TileBuilder::table_of(pool, specializer.copy(epilogue.body), specializer.copy(head));
  if (!words) return {};
  CodeTable table;
  for (int64_t i = 0; i < ByteTable::kValues; ++i) {
    const auto code = static_cast<uint8_t>(words->lowest + i);
    table[code] = static_cast<uint8_t>(words->elements[i]);
  }
  return table;
}

std::optional<QuantizedRest> quantized_rest(const ir::Graph& graph,
                                            const fuse::OpaqueStep::Epilogue& epilogue,
                                            ir::Expr head) {
  const ir::Expr body = epilogue.body;
  if (!is_byte(body->dtype) || body->op != ir::ExprOp::Cast) return {};
  if (body->args[0]->dtype != DType::Float32) return {};
  QuantizedRest rest;
  const ir::Expr number = rounded_within(body->args[0], rest.second);
  if (number == nullptr || !are_bytes(rest.second, body->dtype)) return {};
  SumOfCodes sum(head, epilogue.axes);
  if (!sum.add(number, 1) || sum.value == ir::kAbsent) return {};
  const auto shape = [&](ir::ValueId id) { return graph.values[static_cast<size_t>(id)].shape; };
  const bool finite = std::isfinite(sum.first + sum.second + sum.offset);
  if (!finite || shape(sum.value) != shape(epilogue.value)) return {};
  rest.value = sum.value;
  rest.second.first = sum.first;
  rest.second.second = sum.second;
  rest.second.offset = sum.offset;
  rest.second.is_signed = graph.values[static_cast<size_t>(sum.value)].dtype == DType::Int8;
  return rest;
}

std::optional<QuantizedHead> quantized_head(const ir::Graph& graph,
                                            const fuse::OpaqueStep::Epilogue& epilogue,
                                            int64_t terms) {
  std::optional<QuantizedHead> head;
  visit(epilogue.body, [&](ir::Expr e) {
    if (head) return;
    if (auto rows = rows_of(graph, e, epilogue.axes[1], terms)) head = {e, std::move(*rows)};
  });
  std::unordered_set<ir::Expr> seen;
  if (head && !has_all_sums(epilogue.body, head->expr, seen)) return {};
  return head;
}

}  // namespace redfuser::cpu
