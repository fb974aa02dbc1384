#include "codegen/convolution/columns_product.h"

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/integer_product/integer_kernel.h"
#include "codegen/product/library_product.h"
#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

using Axes = std::vector<ir::Expr>;

const char* const kComment = "convolution\n";

// The coordinates of a linear index in mixed radix.
Axes coordinates(ir::ExprPool& pool, ir::Expr index, const Axes& sizes) {
  Axes result(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    result[i] = i == 0 ? index : pool.floormod(index, sizes[i]);
    index = pool.floordiv(index, sizes[i]);
  }
  return result;
}

class ColumnsProduct {
 public:
  explicit ColumnsProduct(const ConvolutionStep& convolution)
      : step_(convolution),
        builder_(convolution.builder),
        pool_(convolution.pool()),
        depth_(convolution.depth()),
        last_(channels_last(builder_.target, convolution.weights())) {}

  void build() {
    fuse::ProductStep product;
    product.value = static_cast<ir::ValueId>(step_.value);
    product.k = pool_.axis("r", depth_);
    product.axes = step_.output;
    ir::Expr weights = pool_.read(step_.weights(), step_.weights_dtype(),
                                  {pool_.add(pool_.mul(step_.output[1], depth_), product.k)});
    builder_.flat.keep(weights);
    ir::Expr windows = columns(product.k);
    if (channels_last(builder_.target, step_.value)) {
      product.m = step_.positions();
      product.n = {step_.output[1]};
      product.a = windows;
      product.b = {weights};
    } else {
      product.batch = {step_.output[0]};
      product.m = {step_.output[1]};
      product.n = tail(step_.output);
      product.a = weights;
      product.b = {windows};
    }
    product.epilogue = step_.element(step_.sum());
    if (step_.of_integers()) return add_integers(product);
    add_product(builder_, product, step_.value, kComment);
  }

 private:
  // Values of integers have the channel second.
  void add_integers(fuse::ProductStep& product) {
    product.a_zero = step_.weights_zero();
    product.b_zeros = {step_.input_zero()};
    const auto form = integer_form(builder_, product);
    if (const auto* refusal = std::get_if<std::string>(&form)) {
      step_.view.fail("this product of integers has no kernel: " + *refusal);
    }
    add_integer_product(builder_, std::get<IntegerForm>(form));
  }

  bool pointwise() const {
    const Windows& w = step_.windows;
    bool one = !w.padded;
    for (size_t i = 0; i < w.kernel.size(); ++i) one &= w.kernel[i] == 1 && w.stride[i] == 1;
    return one;
  }

  // The input's windows as a matrix, read at depth `k`.
  ir::Expr columns(ir::Expr k) {
    if (pointwise()) {
      Axes index = step_.output;
      index[1] = k;
      return pool_.read(step_.input(), step_.dtype(), index);
    }
    if (apart() && !last_) return patches(k);
    const bool positions_first = channels_last(builder_.target, step_.value);
    Axes axes = positions_first ? step_.positions() : Axes{step_.output[0], k};
    if (positions_first) {
      axes.push_back(k);
    } else {
      for (ir::Expr axis : tail(step_.output)) axes.push_back(axis);
    }
    const auto [channel, taps] = split(k);
    const int64_t scratch = copy_windows(axes, channel, taps);
    return scratch_read(scratch, row_major(pool_, axes, extents_of(pool_, axes)));
  }

  // The channel and the taps at depth `k`, in the order of the weights' memory.
  std::pair<ir::Expr, Axes> split(ir::Expr k) {
    Axes sizes = constants(pool_, step_.windows.kernel);
    sizes.insert(last_ ? sizes.end() : sizes.begin(), step_.channels());
    Axes at = coordinates(pool_, k, sizes);
    if (last_) return {at.back(), {at.begin(), at.end() - 1}};
    return {at.front(), {at.begin() + 1, at.end()}};
  }

  // Windows do not overlap, and a window's row is at least one vector access.
  bool apart() const {
    const Windows& w = step_.windows;
    bool all = w.kernel.back() >= 4;
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      all &= w.dilation[i] == 1 && w.stride[i] >= w.kernel[i];
    }
    return all;
  }

  // Windows that do not overlap, one after the other, so that a window's row stays contiguous.
  ir::Expr patches(ir::Expr k) {
    Axes window = axes_of(pool_, {step_.channels()}, "c");
    const Axes taps = axes_of(pool_, constants(pool_, step_.windows.kernel), "k");
    window.insert(window.end(), taps.begin(), taps.end());
    const Axes position = step_.positions();
    Axes axes = position;
    axes.insert(axes.end(), window.begin(), window.end());
    const int64_t scratch = copy_windows(axes, window[0], taps);
    ir::Expr first = row_major(pool_, position, extents_of(pool_, position));
    return scratch_read(scratch, pool_.add(pool_.mul(first, depth_), k));
  }

  // The input's elements at a channel and taps over the axes, in scratch memory.
  int64_t copy_windows(const Axes& axes, ir::Expr channel, const Axes& taps) {
    const DType dtype = step_.dtype();
    const Axes extents = extents_of(pool_, axes);
    const int64_t scratch = builder_.add_scratch(dtype, product_of(pool_, extents));
    ir::Expr body = tap(step_.view, step_.windows, step_.output[0], channel, tail(step_.output),
                        taps, step_.outside());
    add_map(builder_, kColumnsFamily, axes,
            {{scratch, builder_.flat.flat(body), row_major(pool_, axes, extents)}},
            "windows of a convolution's input\n");
    return scratch;
  }

  ir::Expr scratch_read(int64_t scratch, ir::Expr offset) {
    ir::Expr read = pool_.read(scratch, step_.dtype(), {offset});
    builder_.flat.keep(read);
    return read;
  }

  const ConvolutionStep& step_;
  StepBuilder& builder_;
  ir::ExprPool& pool_;
  ir::Expr depth_;
  bool last_;  // the weights' channels are
};

}  // namespace

void add_columns_product(const ConvolutionStep& convolution) {
  ColumnsProduct(convolution).build();
}

namespace {

// Microseconds by estimate of one thread for each element of the result. Windows are read through
// the first-level cache, so that instructions take the time. Fitted on an H100 to depthwise and
// grouped convolutions in fp32. 0 at unknown sizes.
double plain_time(const ConvolutionStep& c) {
  constexpr double kTermCycles = 22, kMemoryShare = 0.8;
  const StepBuilder& builder = c.builder;
  const auto elements = [&](const std::vector<ir::Expr>& shape) {
    return static_cast<double>(builder.sizes.of(product_of(c.pool(), shape)));
  };
  const Target& target = builder.target;
  const double results = elements(builder.shape(c.value)),
               depth = static_cast<double>(builder.sizes.of(c.depth()));
  if (results < 0) return 0;
  const double lanes = 1.0 * target.multiprocessors * select::kLanes;
  const double work = target.microseconds(results * depth / lanes * kTermCycles);
  const double bytes =
      (results + elements(c.view.shape(0))) * static_cast<double>(size_of(c.dtype()));
  return select::kLaunchTime + select::overlapped(work, bytes / (kMemoryShare * target.dram_rate));
}

}  // namespace

void add_plain_sums(const ConvolutionStep& convolution) {
  const ConvolutionStep& c = convolution;
  ir::ExprPool& pool = c.pool();
  if (!c.weights_shape()[0]->is_constant()) c.view.fail("the number of filters must be static");
  ir::Expr per_group = pool.integer(c.weights_shape()[0]->integer / c.groups());
  ir::Expr group = pool.floordiv(c.output[1], per_group);
  ir::Expr channel = pool.axis("c", c.channels());
  const Axes taps = axes_of(pool, constants(pool, c.windows.kernel), "k");
  Axes weight = {c.output[1], channel};
  weight.insert(weight.end(), taps.begin(), taps.end());
  ir::Expr x = tap(c.view, c.windows, c.output[0], pool.add(pool.mul(group, c.channels()), channel),
                   tail(c.output), taps, c.outside());
  ir::Expr w = pool.read(c.weights(), c.weights_dtype(), weight);
  if (c.of_integers()) {
    const auto without_zero = [&](ir::Expr element, ir::Expr zero) {
      element = pool.cast(DType::Int32, element);
      return zero != nullptr ? pool.sub(element, zero) : element;
    };
    x = without_zero(x, c.input_zero());
    w = without_zero(w, c.weights_zero());
  }
  ir::Expr body = pool.mul(x, w);
  for (size_t i = taps.size(); i-- > 0;) body = pool.reduce(ir::Reduction::Sum, taps[i], body);
  body = c.element(pool.reduce(ir::Reduction::Sum, channel, body));
  StepBuilder& builder = c.builder;
  add_map(builder, kGroupedFamily, builder.memory_axes(c.value, c.output),
          {{c.value, builder.flat.flat(body), builder.offset_of(c.value, c.output)}}, kComment);
  std::get<KernelLaunch>(builder.result.calls.back()).time = plain_time(c);
}

}  // namespace redfuser::codegen
