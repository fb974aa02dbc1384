// Convolutions as sums of products over channels and taps.
#include "reference/operators/convolutions.h"

#include "ops/sizes.h"
#include "reference/operators/windows.h"

namespace redfuser::reference {
namespace {

// The numbers of a convolution's inputs: data, weights, their zero points, bias; -1: none.
struct Operands {
  int data, weights, data_zero = -1, weights_zero = -1, bias = -1;
};

// An integer operand minus its zero point, which may have an element per `channel`.
ir::Expr centred(const ops::LowerContext& context, ir::Expr x, int zero, ir::Expr channel) {
  ir::ExprPool& pool = context.pool();
  if (is_float(x->dtype)) return x;
  x = pool.cast(DType::Int32, x);
  if (!context.has_input(zero)) return x;
  std::vector<ir::Expr> index(context.shape(zero).size(), pool.integer(0));
  if (index.size() == 1 && !context.shape(zero)[0]->is_constant(1)) index[0] = channel;
  return pool.sub(x, pool.cast(DType::Int32, context.read(zero, index)));
}

// Σ over the channels of a group and the taps of data times weights.
ir::Expr convolution(const ops::LowerContext& context, const Operands& operands) {
  ir::ExprPool& pool = context.pool();
  const auto windows = windows_of(context, kernel_of(context, operands.weights));
  const auto out = context.index();
  const int64_t groups = context.integer("group", 1);
  const int64_t filters = size_at(context.shape(operands.weights), 0) / groups;
  std::vector<ir::Expr> taps = tap_axes(context, windows);
  ir::Expr channel =
      context.loop_axis(static_cast<int>(taps.size()), context.shape(operands.weights)[1]);
  ir::Expr group = groups == 1 ? pool.integer(0) : pool.floordiv(out[1], pool.integer(filters));
  ir::Expr first = pool.mul(group, context.shape(operands.weights)[1]);
  const Place place = place_of(pool, windows, out.subspan(2), taps);
  ir::Expr x = context.read(operands.data, joined({out[0], pool.add(first, channel)}, place.at));
  x = centred(context, x, operands.data_zero, pool.integer(0));
  x = pool.select(place.inside, x, pool.number(0, x->dtype));
  ir::Expr w = context.read(operands.weights, joined({out[1], channel}, taps));
  w = centred(context, w, operands.weights_zero, out[1]);
  ir::Expr sum = over(pool, ir::Reduction::Sum, joined({channel}, taps), pool.mul(x, w));
  return context.has_input(operands.bias) ? pool.add(sum, context.read(operands.bias, {out[1]}))
                                          : sum;
}

ir::Expr conv(ops::LowerContext& context) { return convolution(context, {0, 1, -1, -1, 2}); }
ir::Expr conv_integer(ops::LowerContext& context) { return convolution(context, {0, 1, 2, 3, -1}); }

ir::Expr conv_transpose(ops::LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  std::vector<Window> windows = windows_of(context, kernel_of(context, 1));
  const bool fixed = context.has("output_shape");
  const std::string mode = context.text("auto_pad", "NOTSET");
  for (size_t d = 0; d < windows.size(); ++d) {
    Window& w = windows[d];
    const int64_t full =
        (w.input - 1) * w.stride + spatial(context, "output_padding", d, 0) + w.extent();
    if (fixed || mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      split_padding(context, full - w.output, w);
    }
  }
  const auto out = context.index();
  const int64_t groups = context.integer("group", 1);
  const int64_t channels = size_at(context.shape(1), 0) / groups;
  std::vector<ir::Expr> taps = tap_axes(context, windows);
  ir::Expr filters = context.shape(1)[1];
  ir::Expr loop = context.loop_axis(static_cast<int>(taps.size()), pool.integer(channels));
  ir::Expr group = pool.integer(0), filter = out[1];
  if (groups > 1) {
    group = pool.floordiv(out[1], filters);
    filter = pool.floormod(out[1], filters);
  }
  ir::Expr channel = pool.add(pool.mul(group, pool.integer(channels)), loop);
  const Place place = transposed_place_of(pool, windows, out.subspan(2), taps);
  ir::Expr x = context.read(0, joined({out[0], channel}, place.at));
  x = pool.select(place.inside, x, pool.number(0, x->dtype));
  ir::Expr w = context.read(1, joined({channel, filter}, taps));
  ir::Expr sum = over(pool, ir::Reduction::Sum, joined({loop}, taps), pool.mul(x, w));
  return context.has_input(2) ? pool.add(sum, context.read(2, {out[1]})) : sum;
}

}  // namespace

Lower convolution_expression(std::string_view op) {
  if (op == "Conv") return conv;
  if (op == "ConvInteger") return conv_integer;
  if (op == "ConvTranspose") return conv_transpose;
  return nullptr;
}

}  // namespace redfuser::reference
