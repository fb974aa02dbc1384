#include "reference/operators/windows.h"

#include <algorithm>

#include "ops/sizes.h"

namespace redfuser::reference {

int64_t size_at(const std::vector<ir::Expr>& shape, size_t dimension) {
  return *ops::constant_of(shape[dimension]);
}

int64_t spatial(const ops::NodeView& view, const std::string& name, size_t dimension,
                int64_t fallback) {
  const auto values = view.integers(name, {});
  return dimension < values.size() ? values[dimension] : fallback;
}

void split_padding(const ops::NodeView& view, int64_t missing, Window& window) {
  const bool upper = view.text("auto_pad", "NOTSET") == "SAME_UPPER";
  missing = std::max<int64_t>(missing, 0);
  window.pad = upper ? missing / 2 : missing - missing / 2;
  window.pad_end = missing - window.pad;
}

std::vector<Window> windows_of(const ops::LowerContext& context,
                               const std::vector<int64_t>& kernel) {
  const std::string mode = context.text("auto_pad", "NOTSET");
  std::vector<Window> windows;
  for (size_t d = 0; d < kernel.size(); ++d) {
    Window window{size_at(context.shape(0), d + 2),
                  size_at(context.result().shape, d + 2),
                  kernel[d],
                  spatial(context, "strides", d, 1),
                  spatial(context, "dilations", d, 1),
                  spatial(context, "pads", d, 0),
                  spatial(context, "pads", kernel.size() + d, 0)};
    if (mode == "VALID") window.pad = window.pad_end = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t taken = (window.output - 1) * window.stride + window.extent();
      split_padding(context, taken - window.input, window);
    }
    windows.push_back(window);
  }
  return windows;
}

std::vector<int64_t> kernel_of(const ops::LowerContext& context, int weights) {
  std::vector<int64_t> kernel;
  for (size_t d = 2; d < context.shape(weights).size(); ++d) {
    kernel.push_back(size_at(context.shape(weights), d));
  }
  return kernel;
}

ir::Expr below(ir::ExprPool& pool, ir::Expr x, int64_t high) {
  return pool.make(ir::ExprOp::Less, {x, pool.integer(high)});
}

static ir::Expr both(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(ir::ExprOp::And, {a, b});
}

static ir::Expr in_range(ir::ExprPool& pool, ir::Expr x, int64_t size) {
  return both(pool, pool.make(ir::ExprOp::LessEqual, {pool.integer(0), x}), below(pool, x, size));
}

Place place_of(ir::ExprPool& pool, const std::vector<Window>& windows,
               std::span<const ir::Expr> out, const std::vector<ir::Expr>& taps) {
  Place place{{}, pool.boolean(true)};
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& w = windows[d];
    ir::Expr at = pool.add(pool.mul(out[d], pool.integer(w.stride)),
                           pool.mul(taps[d], pool.integer(w.dilation)));
    at = pool.sub(at, pool.integer(w.pad));
    place.inside = both(pool, place.inside, in_range(pool, at, w.input));
    place.at.push_back(at);
  }
  return place;
}

Place transposed_place_of(ir::ExprPool& pool, const std::vector<Window>& windows,
                          std::span<const ir::Expr> out, const std::vector<ir::Expr>& taps) {
  Place place{{}, pool.boolean(true)};
  for (size_t d = 0; d < windows.size(); ++d) {
    const Window& w = windows[d];
    ir::Expr span = pool.sub(pool.add(out[d], pool.integer(w.pad)),
                             pool.mul(taps[d], pool.integer(w.dilation)));
    ir::Expr stride = pool.integer(w.stride), at = pool.floordiv(span, stride);
    ir::Expr on_tap = pool.make(ir::ExprOp::Equal, {pool.floormod(span, stride), pool.integer(0)});
    place.inside = both(pool, place.inside, on_tap);
    place.inside = both(pool, place.inside, in_range(pool, at, w.input));
    place.at.push_back(at);
  }
  return place;
}

std::vector<ir::Expr> joined(std::vector<ir::Expr> index, const std::vector<ir::Expr>& rest) {
  index.insert(index.end(), rest.begin(), rest.end());
  return index;
}

std::vector<ir::Expr> tap_axes(const ops::LowerContext& context,
                               const std::vector<Window>& windows) {
  std::vector<ir::Expr> taps;
  for (const Window& window : windows) {
    taps.push_back(
        context.loop_axis(static_cast<int>(taps.size()), context.pool().integer(window.kernel)));
  }
  return taps;
}

ir::Expr over(ir::ExprPool& pool, ir::Reduction reduction, const std::vector<ir::Expr>& axes,
              ir::Expr body) {
  for (size_t i = axes.size(); i-- > 0;) body = pool.reduce(reduction, axes[i], body);
  return body;
}

}  // namespace redfuser::reference
