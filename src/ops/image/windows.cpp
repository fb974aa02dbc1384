// Shape rules of convolutions and pools. They are opaque: src/cpu has their kernels.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

// The window along one spatial dimension.
struct Window {
  int64_t kernel, stride, dilation, pad_begin, pad_end;
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

enum class AutoPad { Explicit, Same, Valid };

AutoPad auto_pad(const NodeView& view) {
  const std::string mode = view.text("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) return AutoPad::Explicit;
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") return AutoPad::Same;
  if (mode == "VALID") return AutoPad::Valid;
  view.fail(fmt::format("unknown auto_pad \"{}\"", mode));
}

std::vector<int64_t> spatial(const NodeView& view, const char* name, size_t count,
                             int64_t fallback) {
  auto values = view.small_integers(name, std::vector<int64_t>(count, fallback));
  if (values.size() != count) view.fail(fmt::format("{} must have {} entries", name, count));
  return values;
}

std::vector<Window> windows(const NodeView& view, const std::vector<int64_t>& kernel) {
  const size_t rank = kernel.size();
  const auto strides = spatial(view, "strides", rank, 1);
  const auto dilations = spatial(view, "dilations", rank, 1);
  auto pads = spatial(view, "pads", 2 * rank, 0);
  if (auto_pad(view) != AutoPad::Explicit) pads.assign(2 * rank, 0);
  std::vector<Window> result;
  for (size_t i = 0; i < rank; ++i) {
    result.push_back({kernel[i], strides[i], dilations[i], pads[i], pads[rank + i]});
    if (kernel[i] < 1 || strides[i] < 1 || dilations[i] < 1) {
      view.fail("kernel, strides and dilations must be positive");
    }
    if (result[i].pad_begin < 0 || result[i].pad_end < 0) view.fail("pads must not be negative");
  }
  return result;
}

// The kernel's spatial sizes: from the attribute, or from the weights.
std::vector<int64_t> kernel_of(const NodeView& view, int weights) {
  std::vector<int64_t> kernel;
  for (int d = 2; d < view.rank(weights); ++d) {
    const auto size = constant_of(view.shape(weights)[d]);
    if (!size) view.fail_unknown("the kernel's spatial sizes are known only at run time");
    if (*size > std::numeric_limits<int32_t>::max())
      view.fail(fmt::format("a kernel of {}", *size));
    kernel.push_back(*size);
  }
  const auto given = view.integers("kernel_shape", kernel);
  if (given != kernel) view.fail("kernel_shape differs from the weights");
  return kernel;
}

void check_spatial(const NodeView& view, const std::vector<int64_t>& kernel) {
  if (kernel.empty() || view.rank(0) != static_cast<int>(kernel.size()) + 2) {
    view.fail(fmt::format("input {} with a kernel of {} dimensions",
                          shape_text(view.pool(), view.shape(0)), kernel.size()));
  }
}

// The positions of a window along a dimension of `size` elements.
ir::Expr positions(const NodeView& view, ir::Expr size, const Window& window) {
  ir::ExprPool& pool = view.pool();
  ir::Expr stride = pool.integer(window.stride), one = pool.integer(1);
  if (auto_pad(view) == AutoPad::Same) return ceil_div(pool, size, stride);
  ir::Expr padded = pool.add(size, pool.integer(window.pad_begin + window.pad_end));
  ir::Expr span = pool.sub(padded, pool.integer(window.extent()));
  if (view.integer("ceil_mode", 0) == 0) {
    return pool.add(pool.floordiv(span, stride), one);
  }
  // With ceil_mode, a last window counts only if it starts within the input or the padding before
  // it.
  ir::Expr last = ceil_div(pool, span, stride);
  ir::Expr limit = pool.add(size, pool.integer(window.pad_begin));
  return pool.select(less(pool, pool.mul(last, stride), limit), pool.add(last, one), last);
}

Shape pooled(InferContext& context, const std::vector<int64_t>& kernel, ir::Expr channels) {
  check_spatial(context, kernel);
  Shape shape{context.shape(0)[0], channels};
  const auto all = windows(context, kernel);
  for (size_t i = 0; i < all.size(); ++i) {
    shape.push_back(positions(context, context.shape(0)[i + 2], all[i]));
    if (const auto size = constant_of(shape.back()); size && *size <= 0) {
      context.fail(fmt::format("a kernel of {} does not fit into the input {}", kernel[i],
                               shape_text(context.pool(), context.shape(0))));
    }
    context.require_at_most(context.pool().integer(1), shape.back(),
                            fmt::format("places of a kernel of {}", kernel[i]));
  }
  return shape;
}

void infer_pool(InferContext& context) {
  const Shape shape = pooled(context, context.small_integers("kernel_shape", {}),
                             context.rank(0) > 1 ? context.shape(0)[1] : nullptr);
  context.set(0, context.dtype(0), shape);
  context.set(1, DType::Int64, shape);
}

void infer_lp_pool(InferContext& context) {
  const int64_t p = context.integer("p", 2);
  if (p < 1) context.fail(fmt::format("p is {}, which must be positive", p));
  infer_pool(context);
}

// One bias for every output channel.
void check_bias(InferContext& context, int bias, ir::Expr channels) {
  if (!context.has_input(bias)) return;
  if (context.rank(bias) != 1) {
    context.fail(fmt::format("the bias must be a vector, not of shape {}",
                             shape_text(context.pool(), context.shape(bias))));
  }
  context.require_equal(context.shape(bias)[0], channels, "the bias and the output channels");
}

void check_groups(InferContext& context, int weights, int weight_channels) {
  ir::ExprPool& pool = context.pool();
  const int64_t group = context.integer("group", 1);
  ir::Expr channels = context.shape(0)[1];
  if (group < 1) context.fail(fmt::format("group {}", group));
  if (channels->is_constant() && channels->integer % group != 0) {
    context.fail(
        fmt::format("group {} does not divide {} input channels", group, channels->integer));
  }
  ir::Expr expected = context.shape(weights)[weight_channels];
  if (weight_channels == 1) expected = pool.mul(expected, pool.integer(group));
  context.require_equal(
      channels, expected,
      fmt::format("channels of input {} and weights {}", shape_text(pool, context.shape(0)),
                  shape_text(pool, context.shape(weights))));
}

template <int weights, int bias>
void infer_convolution(InferContext& context, DType dtype) {
  const auto kernel = kernel_of(context, weights);
  check_spatial(context, kernel);
  check_groups(context, weights, 1);
  check_bias(context, bias, context.shape(weights)[0]);
  context.set(0, dtype, pooled(context, kernel, context.shape(weights)[0]));
}

void infer_conv(InferContext& context) {
  check_operand(context, 0, Operand::Float);
  infer_convolution<1, 2>(context, context.dtype(0));
}

// ConvInteger has no bias; input 4 does not exist.
void infer_conv_integer(InferContext& context) { infer_convolution<1, 4>(context, DType::Int32); }

// output_padding: rows that a transposed convolution adds at the end, fewer than its stride.
std::vector<int64_t> output_paddings(const NodeView& view, const std::vector<Window>& all) {
  const auto extra = spatial(view, "output_padding", all.size(), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t limit = std::max(all[i].stride, all[i].dilation);
    if (extra[i] >= 0 && extra[i] < limit) continue;
    view.fail(fmt::format("output_padding {} is not in [0, {}), below stride or dilation", extra[i],
                          limit));
  }
  return extra;
}

void infer_conv_transpose(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  check_operand(context, 0, Operand::Float);
  const auto kernel = kernel_of(context, 1);
  check_spatial(context, kernel);
  check_groups(context, 1, 0);
  ir::Expr group = pool.integer(context.integer("group", 1));
  Shape shape{context.shape(0)[0], pool.mul(context.shape(1)[1], group)};
  check_bias(context, 2, shape[1]);
  const auto all = windows(context, kernel);
  const auto extra = output_paddings(context, all);
  auto wanted = context.integers("output_shape", {});
  if (!wanted.empty() && wanted.size() < kernel.size()) {
    context.fail(
        fmt::format("output_shape has {} sizes for {} spatial axes", wanted.size(), kernel.size()));
  }
  if (wanted.size() > kernel.size()) wanted.erase(wanted.begin(), wanted.end() - kernel.size());
  for (size_t i = 0; i < all.size(); ++i) {
    ir::Expr size = context.shape(0)[i + 2], stride = pool.integer(all[i].stride);
    if (!wanted.empty()) {
      shape.push_back(pool.integer(wanted[i]));
    } else if (auto_pad(context) == AutoPad::Same) {
      shape.push_back(pool.mul(size, stride));
    } else {
      const int64_t rest = extra[i] + all[i].extent() - all[i].pad_begin - all[i].pad_end;
      ir::Expr before = pool.mul(pool.sub(size, pool.integer(1)), stride);
      shape.push_back(pool.add(before, pool.integer(rest)));
    }
  }
  context.set(0, context.dtype(0), std::move(shape));
}

PrecisionClass product(const NodeView&) { return PrecisionClass::Product; }
PrecisionClass moves(const NodeView&) { return PrecisionClass::Moves; }

constexpr OpDef kOps[] = {
    {"Conv", "", 1, infer_conv, nullptr, false, nullptr, product},
    {"ConvTranspose", "", 1, infer_conv_transpose, nullptr, false, nullptr, product},
    {"ConvInteger", "", 10, infer_conv_integer, nullptr},
    {"MaxPool", "", 1, infer_pool, nullptr, false, nullptr, moves},
    {"AveragePool", "", 1, infer_pool, nullptr},
    {"LpPool", "", 2, infer_lp_pool, nullptr},
};

}  // namespace

std::span<const OpDef> window_ops() { return kOps; }

}  // namespace redfuser::ops
