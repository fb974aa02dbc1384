// Convolutions and pools: windows of the input as index expressions; products do the sums over
// channels.
#include <limits>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "codegen/product/library_product.h"
#include "ir/scalars/integers.h"
#include "ops/sizes.h"

namespace redfuser::codegen {
namespace {

struct Windows {
  std::vector<int64_t> kernel, stride, dilation;
  std::vector<ir::Expr> pad_begin, pad_end;
  bool padded = false;  // some position may be outside of the input
};

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

// The input element under window position `taps` at output `point`, or `outside`.
ir::Expr tap(const ops::NodeView& view, const Windows& w, ir::Expr batch, ir::Expr channel,
             const std::vector<ir::Expr>& point, const std::vector<ir::Expr>& taps,
             ir::Expr outside) {
  ir::ExprPool& pool = view.pool();
  std::vector<ir::Expr> index = {batch, channel};
  ir::Expr inside = nullptr;
  for (size_t i = 0; i < point.size(); ++i) {
    ir::Expr position = pool.sub(pool.add(pool.mul(point[i], pool.integer(w.stride[i])),
                                          pool.mul(taps[i], pool.integer(w.dilation[i]))),
                                 w.pad_begin[i]);
    if (w.padded) {
      ir::Expr size = view.shape(0)[i + 2];
      ir::Expr here =
          pool.make(ir::ExprOp::And, {pool.make(ir::ExprOp::LessEqual, {pool.integer(0), position}),
                                      pool.make(ir::ExprOp::Less, {position, size})});
      inside = inside ? pool.make(ir::ExprOp::And, {inside, here}) : here;
      position =
          pool.make(ir::ExprOp::Min, {pool.make(ir::ExprOp::Max, {position, pool.integer(0)}),
                                      pool.sub(size, pool.integer(1))});
    }
    index.push_back(position);
  }
  ir::Expr read = pool.read(view.node().inputs[0], view.dtype(0), index);
  return inside ? pool.select(inside, read, outside) : read;
}

// Axes named after their dimensions.
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

// The coordinates of a linear index in mixed radix.
std::vector<ir::Expr> coordinates(ir::ExprPool& pool, ir::Expr index,
                                  const std::vector<int64_t>& sizes) {
  std::vector<ir::Expr> result(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    result[i] = i == 0 ? index : pool.floormod(index, pool.integer(sizes[i]));
    index = pool.floordiv(index, pool.integer(sizes[i]));
  }
  return result;
}

class Convolution {
 public:
  using Epilogue = fuse::OpaqueStep::Epilogue;

  // `epilogue`: null where the result is the node's.
  Convolution(StepBuilder& builder, const ops::NodeView& view, const Epilogue* epilogue)
      : builder_(builder), view_(view), epilogue_(epilogue), pool_(builder.pool()) {
    std::vector<int64_t> kernel;
    for (size_t i = 2; i < view.shape(1).size(); ++i) {
      if (!view.shape(1)[i]->is_constant()) view.fail("the kernel's spatial sizes must be static");
      kernel.push_back(view.shape(1)[i]->integer);
    }
    w_ = windows_of(view, kernel);
    value_ = epilogue ? epilogue->value : view.node().outputs[0];
    output_ = axes_of(pool_, builder.shape(value_), "o");
    depth_ = view.shape(1)[1];
    for (int64_t size : w_.kernel) depth_ = pool_.mul(depth_, pool_.integer(size));
    comment_ = "convolution\n";
  }

  void build() {
    if (view_.integer("group", 1) != 1) return direct();
    fuse::ProductStep product;
    product.value = value_;
    product.batch = {output_[0]};
    product.m = {output_[1]};
    product.n = tail(output_);
    product.k = pool_.axis("r", depth_);
    product.axes = output_;
    product.a = pool_.read(view_.node().inputs[1], view_.dtype(1),
                           {pool_.add(pool_.mul(output_[1], depth_), product.k)});
    builder_.flat.keep(product.a);
    product.b = {columns(product.k)};
    ir::Expr sum = pool_.leaf(ir::LeafKind::Product, 0, view_.dtype(0));
    product.epilogue = result(sum);
    add_product(builder_, product, value_, comment_);
  }

 private:
  ir::Expr bias() {
    return pool_.cast(view_.dtype(0),
                      pool_.read(view_.node().inputs[2], view_.dtype(2), {output_[1]}));
  }

  // The result's element, from its sum of products.
  ir::Expr result(ir::Expr sum) {
    if (view_.has_input(2)) sum = pool_.add(sum, bias());
    if (epilogue_ == nullptr) return sum;
    std::vector<std::pair<ir::Expr, ir::Expr>> map = {
        {pool_.leaf(ir::LeafKind::Product, 0, view_.dtype(0)), sum}};
    for (size_t i = 0; i < output_.size(); ++i) {
      if (epilogue_->axes[i]->op == ir::ExprOp::Axis) {
        map.emplace_back(epilogue_->axes[i], output_[i]);
      }
    }
    return pool_.substitute(epilogue_->body, map);
  }

  bool pointwise() const {
    bool one = !w_.padded;
    for (size_t i = 0; i < w_.kernel.size(); ++i) one &= w_.kernel[i] == 1 && w_.stride[i] == 1;
    return one;
  }

  // The input's windows as a matrix [batch, depth, positions], read at depth `k`.
  ir::Expr columns(ir::Expr k) {
    std::vector<ir::Expr> point = tail(output_);
    if (pointwise()) {
      std::vector<ir::Expr> index = {output_[0], k};
      index.insert(index.end(), point.begin(), point.end());
      return pool_.read(view_.node().inputs[0], view_.dtype(0), index);
    }
    if (apart()) return patches(k, point);
    std::vector<ir::Expr> axes = {output_[0], k};
    axes.insert(axes.end(), point.begin(), point.end());
    std::vector<int64_t> sizes = {1};
    sizes.insert(sizes.end(), w_.kernel.begin(), w_.kernel.end());
    const std::vector<ir::Expr> at = coordinates(pool_, k, sizes);
    const int64_t scratch = copy_windows(axes, at[0], {at.begin() + 1, at.end()});
    return scratch_read(scratch, row_major(pool_, axes, extents_of(pool_, axes)));
  }

  // Windows do not overlap, and a window's row is at least one vector access.
  bool apart() const {
    bool all = w_.kernel.back() >= 4;
    for (size_t i = 0; i < w_.kernel.size(); ++i) {
      all &= w_.dilation[i] == 1 && w_.stride[i] >= w_.kernel[i];
    }
    return all;
  }

  // Windows that do not overlap, one after the other, so that a window's row stays contiguous.
  ir::Expr patches(ir::Expr k, const std::vector<ir::Expr>& point) {
    std::vector<ir::Expr> window = axes_of(pool_, {view_.shape(1)[1]}, "c");
    const std::vector<ir::Expr> taps = axes_of(pool_, constants(pool_, w_.kernel), "k");
    window.insert(window.end(), taps.begin(), taps.end());
    std::vector<ir::Expr> place = {output_[0]};
    place.insert(place.end(), point.begin(), point.end());
    std::vector<ir::Expr> axes = place;
    axes.insert(axes.end(), window.begin(), window.end());
    const int64_t scratch = copy_windows(axes, window[0], taps);
    ir::Expr first = row_major(pool_, place, extents_of(pool_, place));
    return scratch_read(scratch, pool_.add(pool_.mul(first, depth_), k));
  }

  // The input's elements at a channel and taps over the axes, in scratch memory.
  int64_t copy_windows(const std::vector<ir::Expr>& axes, ir::Expr channel,
                       const std::vector<ir::Expr>& taps) {
    const std::vector<ir::Expr> extents = extents_of(pool_, axes);
    const int64_t scratch = builder_.add_scratch(view_.dtype(0), product_of(pool_, extents));
    ir::Expr body =
        tap(view_, w_, output_[0], channel, tail(output_), taps, pool_.number(0, view_.dtype(0)));
    add_map(builder_, "image_to_columns", axes,
            {{scratch, builder_.flat.flat(body), row_major(pool_, axes, extents)}},
            "windows of a convolution's input\n");
    return scratch;
  }

  ir::Expr scratch_read(int64_t scratch, ir::Expr offset) {
    ir::Expr read = pool_.read(scratch, view_.dtype(0), {offset});
    builder_.flat.keep(read);
    return read;
  }

  // Groups have few channels each: plain sums are used.
  void direct() {
    const int64_t groups = view_.integer("group", 1);
    if (!view_.shape(1)[0]->is_constant()) view_.fail("the number of filters must be static");
    ir::Expr channels = view_.shape(1)[1];
    ir::Expr per_group = pool_.integer(view_.shape(1)[0]->integer / groups);
    ir::Expr group = pool_.floordiv(output_[1], per_group);
    ir::Expr channel = pool_.axis("c", channels);
    const std::vector<ir::Expr> taps = axes_of(pool_, constants(pool_, w_.kernel), "k");
    std::vector<ir::Expr> weight = {output_[1], channel};
    weight.insert(weight.end(), taps.begin(), taps.end());
    ir::Expr x = tap(view_, w_, output_[0], pool_.add(pool_.mul(group, channels), channel),
                     tail(output_), taps, pool_.number(0, view_.dtype(0)));
    ir::Expr body = pool_.mul(x, pool_.read(view_.node().inputs[1], view_.dtype(1), weight));
    for (size_t i = taps.size(); i-- > 0;) body = pool_.reduce(ir::Reduction::Sum, taps[i], body);
    body = result(pool_.reduce(ir::Reduction::Sum, channel, body));
    add_map(builder_, "grouped_convolution", output_,
            {{value_, builder_.flat.flat(body), row_major(pool_, output_, builder_.shape(value_))}},
            comment_);
  }

  StepBuilder& builder_;
  const ops::NodeView& view_;
  const Epilogue* epilogue_;
  ir::ExprPool& pool_;
  Windows w_;
  ir::ValueId value_ = -1;
  std::vector<ir::Expr> output_;
  ir::Expr depth_ = nullptr;
  std::string comment_;
};

struct PoolWindow {
  Windows w;
  std::vector<ir::Expr> output, taps;
};

PoolWindow pool_window(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  PoolWindow result;
  result.w = windows_of(view, view.integers("kernel_shape", {}));
  result.output = axes_of(pool, builder.shape(view.node().outputs[0]), "o");
  result.taps = axes_of(pool, constants(pool, result.w.kernel), "k");
  return result;
}

void add_pool(StepBuilder& builder, const ops::NodeView& view, const PoolWindow& p,
              const char* name, ir::Expr body) {
  const ir::ValueId value = view.node().outputs[0];
  add_map(
      builder, name, p.output,
      {{value, builder.flat.flat(body), row_major(builder.pool(), p.output, builder.shape(value))}},
      std::string(name) + "\n");
}

ir::Expr reduced(ir::ExprPool& pool, ir::Reduction reduction, const std::vector<ir::Expr>& taps,
                 ir::Expr body) {
  for (size_t i = taps.size(); i-- > 0;) body = pool.reduce(reduction, taps[i], body);
  return body;
}

// The number of taps of a window along one dimension that an average divides by.
ir::Expr counted_taps(const ops::NodeView& view, const PoolWindow& p, size_t i) {
  ir::ExprPool& pool = view.pool();
  if (!p.w.padded) return pool.integer(p.w.kernel[i]);
  const bool include_pad = view.integer("count_include_pad", 0) != 0;
  ir::Expr position = pool.sub(pool.add(pool.mul(p.output[i + 2], pool.integer(p.w.stride[i])),
                                        pool.mul(p.taps[i], pool.integer(p.w.dilation[i]))),
                               p.w.pad_begin[i]);
  ir::Expr size = view.shape(0)[i + 2];
  ir::Expr inside = ops::less(pool, position, include_pad ? pool.add(size, p.w.pad_end[i]) : size);
  if (!include_pad)
    inside = pool.make(ir::ExprOp::And, {ops::less(pool, pool.integer(-1), position), inside});
  return pool.reduce(ir::Reduction::Sum, p.taps[i],
                     pool.select(inside, pool.integer(1), pool.integer(0)));
}

}  // namespace

void generate_conv(StepBuilder& builder, const ops::NodeView& view) {
  const auto& step = std::get<fuse::OpaqueStep>(builder.step.kind);
  Convolution(builder, view, step.epilogue ? &*step.epilogue : nullptr).build();
}

void generate_max_pool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  if (view.has_output(1)) view.fail("the indices of a maximum have no kernel on a GPU");
  const PoolWindow p = pool_window(builder, view);
  const DType dtype = view.dtype(0);
  ir::Expr outside = is_float(dtype) ? pool.number(-std::numeric_limits<double>::infinity(), dtype)
                                     : pool.number_int(ir::lowest_word(dtype), dtype);
  ir::Expr x = tap(view, p.w, p.output[0], p.output[1], tail(p.output), p.taps, outside);
  add_pool(builder, view, p, "max_pool", reduced(pool, ir::Reduction::Max, p.taps, x));
}

void generate_average_pool(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const PoolWindow p = pool_window(builder, view);
  const DType dtype = view.dtype(0);
  ir::Expr x =
      tap(view, p.w, p.output[0], p.output[1], tail(p.output), p.taps, pool.number(0, dtype));
  ir::Expr count = pool.integer(1);
  for (size_t i = 0; i < p.taps.size(); ++i) count = pool.mul(count, counted_taps(view, p, i));
  const DType wide = ops::computing_type(dtype);
  ir::Expr sum = pool.cast(wide, reduced(pool, ir::Reduction::Sum, p.taps, x));
  ir::Expr divisor = pool.cast(wide, pool.make(ir::ExprOp::Max, {count, pool.integer(1)}));
  add_pool(builder, view, p, "average_pool", pool.cast(dtype, pool.div(sum, divisor)));
}

}  // namespace redfuser::codegen
