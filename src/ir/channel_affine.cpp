#include "ir/channel_affine.h"

#include <algorithm>
#include <iterator>

#include "ir/evaluate.h"

namespace redfuser::ir {
namespace {

double number_at(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::Float64:
      return tensor.as<double>()[i];
    case DType::Int32:
      return tensor.as<int32_t>()[i];
    default:
      return static_cast<double>(tensor.as<float>()[i]);
  }
}

}  // namespace

std::vector<double> ChannelAffineForms::all(double number) const {
  return std::vector<double>(static_cast<size_t>(channels_), number);
}

std::optional<ChannelAffine> ChannelAffineForms::of(Expr e) const {
  if (is_variable_(e)) return ChannelAffine{all(1), all(0), false};
  if (!is_float(e->dtype)) return std::nullopt;
  bool varies = false;
  visit(e, [&](Expr part) { varies |= is_variable_(part); });
  if (!varies) return constant_of(e);
  if (e->args.size() != 2) return std::nullopt;
  const auto a = of(e->args[0]);
  if (!a) return std::nullopt;
  const auto b = of(e->args[1]);
  return b ? combined(e->op, *a, *b) : std::nullopt;
}

std::optional<ChannelAffine> ChannelAffineForms::combined(ExprOp op, const ChannelAffine& a,
                                                          const ChannelAffine& b) const {
  ChannelAffine result = a;
  result.constant = a.constant && b.constant;
  for (size_t c = 0; c < a.scale.size(); ++c) {
    switch (op) {
      case ExprOp::Add:
      case ExprOp::Sub: {
        const double sign = op == ExprOp::Add ? 1 : -1;
        result.scale[c] += sign * b.scale[c];
        result.shift[c] += sign * b.shift[c];
        break;
      }
      case ExprOp::Mul: {
        if (!a.constant && !b.constant) return std::nullopt;
        const ChannelAffine &x = a.constant ? b : a, &k = a.constant ? a : b;
        result.scale[c] = x.scale[c] * k.shift[c];
        result.shift[c] = x.shift[c] * k.shift[c];
        break;
      }
      case ExprOp::Div:
        if (!b.constant) return std::nullopt;
        result.scale[c] /= b.shift[c];
        result.shift[c] /= b.shift[c];
        break;
      default:
        return std::nullopt;
    }
  }
  return result;
}

std::optional<ChannelAffine> ChannelAffineForms::constant_of(Expr e) const {
  bool known = e->bound_level == 0;
  visit(e, [&](Expr part) {
    if (part->op == ExprOp::Read) known &= is_number(part);
    known &= part->op != ExprOp::Axis || part == channel_;
    known &= part->op != ExprOp::Symbol && part->op != ExprOp::Leaf;
  });
  if (!known) return std::nullopt;
  ChannelAffine result{all(0), all(0)};
  for (size_t c = 0; c < result.shift.size(); ++c) {
    result.shift[c] = evaluate(e, [&](Expr leaf) {
      if (leaf->op == ExprOp::Axis) return static_cast<double>(c);
      const Tensor& tensor = graph_.values[static_cast<size_t>(leaf->integer)].constant;
      return number_at(tensor, tensor.size() == 1 ? 0 : static_cast<int64_t>(c));
    });
  }
  return result;
}

// A constant of one element, or of one for each channel.
bool ChannelAffineForms::is_number(Expr read) const {
  if (read->integer < 0) return false;
  const Value& value = graph_.values[static_cast<size_t>(read->integer)];
  if (!value.is_constant()) return false;
  constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::Int32};
  if (std::find(std::begin(kTypes), std::end(kTypes), value.dtype) == std::end(kTypes)) {
    return false;
  }
  int64_t size = 1;
  for (const Expr at : read->args) {
    if (at->is_constant(0)) continue;
    if (at != channel_ || size > 1) return false;
    size = channels_;
  }
  return value.constant.size() == size;
}

}  // namespace redfuser::ir
