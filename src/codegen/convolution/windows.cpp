#include "codegen/convolution/windows.h"

namespace redfuser::codegen {

Windows windows_of(const ops::NodeView& view, std::vector<int64_t> kernel) {
  ir::ExprPool& pool = view.pool();
  const size_t rank = kernel.size();
  Windows w;
  w.kernel = std::move(kernel);
  w.stride = view.integers("strides", std::vector<int64_t>(rank, 1));
  w.dilation = view.integers("dilations", std::vector<int64_t>(rank, 1));
  const auto pads = view.integers("pads", std::vector<int64_t>(2 * rank, 0));
  const std::string mode = view.text("auto_pad", "NOTSET");
  w.padded = view.integer("ceil_mode", 0) != 0;
  const auto& output = view.graph().values[static_cast<size_t>(view.node().outputs[0])].shape;
  for (size_t i = 0; i < rank; ++i) {
    ir::Expr begin = pool.integer(mode == "VALID" ? 0 : pads[i]);
    ir::Expr end = pool.integer(mode == "VALID" ? 0 : pads[rank + i]);
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t extent = (w.kernel[i] - 1) * w.dilation[i] + 1;
      ir::Expr span =
          pool.add(pool.mul(pool.sub(output[i + 2], pool.integer(1)), pool.integer(w.stride[i])),
                   pool.integer(extent));
      ir::Expr total =
          pool.make(ir::ExprOp::Max, {pool.sub(span, view.shape(0)[i + 2]), pool.integer(0)});
      ir::Expr small = pool.floordiv(total, pool.integer(2)), large = pool.sub(total, small);
      begin = mode == "SAME_UPPER" ? small : large;
      end = mode == "SAME_UPPER" ? large : small;
    }
    w.padded |= !begin->is_constant(0) || !end->is_constant(0);
    w.pad_begin.push_back(begin);
    w.pad_end.push_back(end);
  }
  return w;
}

TapPlace place_along(const ops::NodeView& view, const Windows& w, size_t i, ir::Expr point,
                     ir::Expr tap) {
  ir::ExprPool& pool = view.pool();
  ir::Expr position = pool.sub(pool.add(pool.mul(point, pool.integer(w.stride[i])),
                                        pool.mul(tap, pool.integer(w.dilation[i]))),
                               w.pad_begin[i]);
  if (!w.padded) return {{position}};
  ir::Expr size = view.shape(0)[i + 2];
  ir::Expr inside =
      pool.make(ir::ExprOp::And, {pool.make(ir::ExprOp::LessEqual, {pool.integer(0), position}),
                                  pool.make(ir::ExprOp::Less, {position, size})});
  position = pool.make(ir::ExprOp::Min, {pool.make(ir::ExprOp::Max, {position, pool.integer(0)}),
                                         pool.sub(size, pool.integer(1))});
  return {{position}, inside};
}

TapPlace place_of(const ops::NodeView& view, const Windows& w, const std::vector<ir::Expr>& point,
                  const std::vector<ir::Expr>& taps) {
  TapPlace place;
  for (size_t i = 0; i < point.size(); ++i) {
    const TapPlace along = place_along(view, w, i, point[i], taps[i]);
    place.at.push_back(along.at[0]);
    const bool both = place.inside != nullptr && along.inside != nullptr;
    place.inside =
        both ? view.pool().make(ir::ExprOp::And, {place.inside, along.inside}) : along.inside;
  }
  return place;
}

ir::Expr tap(const ops::NodeView& view, const Windows& w, ir::Expr batch, ir::Expr channel,
             const std::vector<ir::Expr>& point, const std::vector<ir::Expr>& taps,
             ir::Expr outside) {
  ir::ExprPool& pool = view.pool();
  const TapPlace place = place_of(view, w, point, taps);
  std::vector<ir::Expr> index = {batch, channel};
  index.insert(index.end(), place.at.begin(), place.at.end());
  ir::Expr read = pool.read(view.node().inputs[0], view.dtype(0), index);
  return place.inside ? pool.select(place.inside, read, outside) : read;
}

std::vector<ir::Expr> axes_of(ir::ExprPool& pool, const std::vector<ir::Expr>& extents,
                              const char* name) {
  std::vector<ir::Expr> axes;
  for (ir::Expr extent : extents) axes.push_back(pool.axis(name, extent));
  return axes;
}

std::vector<ir::Expr> tail(const std::vector<ir::Expr>& list) {
  return {list.begin() + 2, list.end()};
}

std::vector<ir::Expr> constants(ir::ExprPool& pool, const std::vector<int64_t>& values) {
  std::vector<ir::Expr> result;
  for (int64_t value : values) result.push_back(pool.integer(value));
  return result;
}

}  // namespace redfuser::codegen
