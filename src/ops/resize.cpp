// The shape rules of Resize and Upsample, which are opaque.
#include <cmath>

#include "base/error.h"
#include "base/integers.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser {
namespace {

std::vector<int> resized_axes(const NodeView& view) {
  std::vector<int> axes;
  for (int d = 0; d < view.rank(0); ++d) axes.push_back(d);
  return axes_argument(view, "axes", -1, view.rank(0)).value_or(axes);
}

// floor(size * scale) in float32, the type of the scales.
Expr scaled_size(ExprPool& pool, Expr size, Expr scale) {
  if (scale->is_constant() && scale->number == std::floor(scale->number)) {
    return pool.mul(size, pool.integer(saturated<int64_t>(scale->number)));
  }
  Expr exact = pool.mul(pool.cast(DType::Float32, size), pool.cast(DType::Float32, scale));
  return pool.cast(DType::Int64, pool.make(ExprOp::Floor, {exact}));
}

// The scales as expressions; null if only the run knows them.
std::optional<std::vector<Expr>> scales_of(const NodeView& view, int input) {
  if (view.has("scales")) {
    const auto* values = std::get_if<std::vector<float>>(&view.node().attributes.at("scales"));
    if (!values) view.fail("attribute scales is no list of floats");
    std::vector<Expr> scales;
    for (float value : *values) scales.push_back(view.pool().number(value, DType::Float32));
    return scales;
  }
  if (!view.has_input(input)) view.fail("neither scales nor sizes are given");
  const auto* elements = view.elements(input);
  return elements ? std::optional(*elements) : std::nullopt;
}

void apply_scales(InferContext& context, int input, const std::vector<int>& axes, Shape& shape) {
  const auto scales = scales_of(context, input);
  if (scales && scales->size() != axes.size()) {
    context.fail(fmt::format("{} scales for {} axes", scales->size(), axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Expr& size = shape[axes[i]];
    size = scales ? scaled_size(context.pool(), size, (*scales)[i])
                  : context.fresh_size(fmt::format("0.{}", axes[i]));
  }
}

void infer_resize(InferContext& context) {
  const bool early = context.opset() < 11;
  const std::vector<int> axes = resized_axes(context);
  Shape shape = context.shape(0);
  const int sizes = early ? -1 : 3;
  const bool by_size =
      context.has_input(sizes) && constant_count(context.shape(sizes)).value_or(1) != 0;
  if (!by_size) {
    apply_scales(context, early ? 1 : 2, axes, shape);
  } else {
    const auto given = size_argument(context, "", sizes);
    if (given->size() != axes.size()) {
      context.fail(fmt::format("{} sizes for {} axes", given->size(), axes.size()));
    }
    const bool stretch = context.text("keep_aspect_ratio_policy", "stretch") == "stretch";
    for (size_t i = 0; i < axes.size(); ++i) {
      shape[axes[i]] = stretch ? (*given)[i] : context.fresh_size(fmt::format("0.{}", axes[i]));
    }
  }
  context.set(0, context.dtype(0), std::move(shape));
}

void infer_upsample(InferContext& context) {
  Shape shape = context.shape(0);
  apply_scales(context, 1, resized_axes(context), shape);
  context.set(0, context.dtype(0), std::move(shape));
}

constexpr OpDef kOps[] = {
    {"Resize", "", 10, infer_resize, nullptr},
    {"Upsample", "", 7, infer_upsample, nullptr},
};

}  // namespace

std::span<const OpDef> resize_ops() { return kOps; }

}  // namespace redfuser
