// The shape rules of Resize and Upsample.
#include <cmath>

#include "base/error.h"
#include "base/integers.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/image/resize.h"
#include "ops/image/resize_lowering.h"

namespace redfuser::ops {

std::vector<int> resized_axes(const NodeView& view) {
  std::vector<int> axes;
  for (int d = 0; d < view.rank(0); ++d) axes.push_back(d);
  return axes_argument(view, "axes", -1, view.rank(0)).value_or(axes);
}

bool resized_by_sizes(const NodeView& view) {
  // An empty tensor counts as absent.
  const auto given = [&](int input) {
    return view.has_input(input) && constant_count(view.shape(input)).value_or(1) != 0;
  };
  if (view.node().op != "Resize" || view.opset() < 11 || !given(3)) return false;
  if (given(2)) view.fail("both scales and sizes are given");
  return true;
}

std::optional<std::vector<ir::Expr>> resize_scales(const NodeView& view) {
  const int input = view.node().op == "Upsample" || view.opset() < 11 ? 1 : 2;
  if (view.has("scales")) {
    const auto* values = std::get_if<std::vector<float>>(&view.node().attributes.at("scales"));
    if (!values) view.fail("attribute scales is no list of floats");
    std::vector<ir::Expr> scales;
    for (float value : *values) scales.push_back(view.pool().number(value, DType::Float32));
    return scales;
  }
  if (!view.has_input(input)) view.fail("neither scales nor sizes are given");
  const auto* elements = view.elements(input);
  return elements ? std::optional(*elements) : std::nullopt;
}

namespace {

// floor(size * scale) in float32, the type of the scales.
ir::Expr scaled_size(ir::ExprPool& pool, ir::Expr size, ir::Expr scale) {
  if (scale->is_constant() && scale->number == std::floor(scale->number)) {
    return pool.mul(size, pool.integer(saturated<int64_t>(scale->number)));
  }
  ir::Expr exact = pool.mul(pool.cast(DType::Float32, size), pool.cast(DType::Float32, scale));
  return pool.cast(DType::Int64, pool.make(ir::ExprOp::Floor, {exact}));
}

void apply_scales(InferContext& context, const std::vector<int>& axes, Shape& shape) {
  const auto scales = resize_scales(context);
  if (scales && scales->size() != axes.size()) {
    context.fail(fmt::format("{} scales for {} axes", scales->size(), axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    ir::Expr& size = shape[axes[i]];
    size = scales ? scaled_size(context.pool(), size, (*scales)[i])
                  : context.fresh_size(fmt::format("0.{}", axes[i]));
  }
}

void infer_resize(InferContext& context) {
  const std::vector<int> axes = resized_axes(context);
  Shape shape = context.shape(0);
  if (!resized_by_sizes(context)) {
    apply_scales(context, axes, shape);
  } else {
    const auto given = size_argument(context, "", 3);
    if (given->size() != axes.size()) {
      context.fail(fmt::format("{} sizes for {} axes", given->size(), axes.size()));
    }
    const bool stretch = context.text("keep_aspect_ratio_policy", "stretch") == "stretch";
    for (size_t i = 0; i < axes.size(); ++i) {
      shape[axes[i]] = stretch ? (*given)[i] : context.fresh_size(fmt::format("0.{}", axes[i]));
    }
  }
  if (!resize_is_expression(context, shape)) context.choose_opaque();
  context.set(0, context.dtype(0), std::move(shape));
}

constexpr OpDef kOpaqueResize{"Resize", "", 10, infer_resize, nullptr};
constexpr OpDef kOpaqueUpsample{"Upsample", "", 7, infer_resize, nullptr};

constexpr OpDef kOps[] = {
    {"Resize", "", 10, infer_resize, lower_resize, false, &kOpaqueResize},
    {"Upsample", "", 7, infer_resize, lower_resize, false, &kOpaqueUpsample},
};

}  // namespace

std::span<const OpDef> resize_ops() { return kOps; }

}  // namespace redfuser::ops
