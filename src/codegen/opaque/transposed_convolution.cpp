// Transposed convolutions: a matrix product, of each group, computes the contribution of every
// input element by every tap, and an output element is the sum of its contributions. Groups of few
// channels have plain sums instead, where these are faster.
#include "codegen/convolution/windows.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "codegen/product/library_product.h"
#include "codegen/product/library_time.h"

namespace redfuser::codegen {
namespace {

class TransposedConvolution {
 public:
  TransposedConvolution(StepBuilder& builder, const ops::NodeView& view)
      : builder_(builder), view_(view), pool_(builder.pool()), value_(view.node().outputs[0]) {
    for (size_t i = 2; i < view.shape(1).size(); ++i) {
      if (!view.shape(1)[i]->is_constant()) view.fail("the kernel's spatial sizes must be static");
      kernel_.push_back(view.shape(1)[i]->integer);
    }
    stride_ = view.integers("strides", std::vector<int64_t>(kernel_.size(), 1));
    dilation_ = view.integers("dilations", std::vector<int64_t>(kernel_.size(), 1));
    for (ir::Expr size : builder.shape(value_)) output_.push_back(pool_.axis("o", size));
    groups_ = view.integer("group", 1);
    filters_ = view.shape(1)[1];
    taps_ = product_of(pool_, tail(view.shape(1)));
  }

  // By products, or by plain sums.
  void build(bool products) {
    std::vector<ir::Expr> taps, pixels, loops;
    ir::Expr valid = nullptr;
    for (size_t i = 0; i < kernel_.size(); ++i) place(i, taps, pixels, loops, valid);
    ir::Expr element = products ? from_columns(taps, pixels) : from_channels(taps, pixels, loops);
    ir::Expr sum = element;
    if (valid) sum = pool_.select(valid, sum, pool_.number(0, sum->dtype));
    for (size_t i = loops.size(); i-- > 0;) sum = pool_.reduce(ir::Reduction::Sum, loops[i], sum);
    if (view_.has_input(2)) sum = pool_.add(sum, pool_.cast(sum->dtype, read(2, {output_[1]})));
    sum = pool_.cast(view_.dtype(0), sum);
    add_map(builder_, "transposed_convolution", builder_.memory_axes(value_, output_),
            {{value_, builder_.flat.flat(sum), builder_.offset_of(value_, output_)}},
            "transposed convolution\n");
  }

 private:
  ir::Expr read(int input, std::vector<ir::Expr> index) {
    return pool_.read(view_.node().inputs[static_cast<size_t>(input)], view_.dtype(input),
                      std::move(index));
  }

  // Padding that is cropped before the first output element.
  ir::Expr pad_begin(size_t i) const {
    const std::string mode = view_.text("auto_pad", "NOTSET");
    const size_t rank = kernel_.size();
    const bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
    if (!same && !view_.has("output_shape")) {
      const auto pads = view_.integers("pads", std::vector<int64_t>(2 * rank, 0));
      return pool_.integer(mode == "VALID" ? 0 : pads[i]);
    }
    const auto extra = view_.integers("output_padding", std::vector<int64_t>(rank, 0));
    ir::Expr before =
        pool_.mul(pool_.sub(view_.shape(0)[i + 2], pool_.integer(1)), pool_.integer(stride_[i]));
    ir::Expr full =
        pool_.add(before, pool_.integer(extra[i] + (kernel_[i] - 1) * dilation_[i] + 1));
    ir::Expr total = pool_.sub(full, output_[i + 2]->extent());
    total = pool_.make(ir::ExprOp::Max, {total, pool_.integer(0)});
    ir::Expr small = pool_.floordiv(total, pool_.integer(2));
    return mode == "SAME_UPPER" ? small : pool_.sub(total, small);
  }

  // The taps of an axis that reach the output element, and the input elements under them: output
  // o + pad = stride * pixel + dilation * tap.
  void place(size_t i, std::vector<ir::Expr>& taps, std::vector<ir::Expr>& pixels,
             std::vector<ir::Expr>& loops, ir::Expr& valid) {
    ir::Expr at = pool_.add(output_[i + 2], pad_begin(i)), stride = pool_.integer(stride_[i]);
    ir::Expr size = view_.shape(0)[i + 2], kernel = pool_.integer(kernel_[i]),
             zero = pool_.integer(0);
    auto require = [&](ir::Expr condition) {
      valid = valid ? pool_.make(ir::ExprOp::And, {valid, condition}) : condition;
    };
    ir::Expr tap = nullptr, pixel = nullptr;
    if (dilation_[i] == 1) {
      const int64_t steps = (kernel_[i] + stride_[i] - 1) / stride_[i];
      ir::Expr step = zero;
      if (steps > 1) loops.push_back(step = pool_.axis("k", pool_.integer(steps)));
      tap = pool_.add(pool_.floormod(at, stride), pool_.mul(step, stride));
      pixel = pool_.sub(pool_.floordiv(at, stride), step);
      if (kernel_[i] % stride_[i] != 0) require(pool_.make(ir::ExprOp::Less, {tap, kernel}));
    } else {
      loops.push_back(tap = pool_.axis("k", kernel));
      ir::Expr distance = pool_.sub(at, pool_.mul(tap, pool_.integer(dilation_[i])));
      pixel = pool_.floordiv(distance, stride);
      require(pool_.make(ir::ExprOp::Equal, {pool_.floormod(distance, stride), zero}));
    }
    require(pool_.make(ir::ExprOp::LessEqual, {zero, pixel}));
    require(pool_.make(ir::ExprOp::Less, {pixel, size}));
    ir::Expr last = pool_.sub(size, pool_.integer(1));
    pixels.push_back(
        pool_.make(ir::ExprOp::Min, {pool_.make(ir::ExprOp::Max, {pixel, zero}), last}));
    taps.push_back(pool_.make(ir::ExprOp::Min, {tap, pool_.sub(kernel, pool_.integer(1))}));
  }

  ir::Expr channels() const {
    if (groups_ == 1) return view_.shape(1)[0];
    if (!view_.shape(1)[0]->is_constant()) view_.fail("the number of channels must be static");
    return pool_.integer(view_.shape(1)[0]->integer / groups_);
  }

  // columns[n, g, (filter, tap), pixel] = Σ_c weights[g, c, (filter, tap)] · x[n, g, c, pixel] in
  // scratch memory, read at the taps and pixels.
  ir::Expr from_columns(const std::vector<ir::Expr>& taps, const std::vector<ir::Expr>& pixels) {
    ir::Expr depth = pool_.mul(filters_, taps_);
    fuse::ProductStep product;
    product.value = value_;
    product.batch = {pool_.axis("n", view_.shape(0)[0])};
    product.m = {pool_.axis("f", depth)};
    for (ir::Expr size : tail(view_.shape(0))) product.n.push_back(pool_.axis("p", size));
    product.k = pool_.axis("c", channels());
    ir::Expr channel = product.k;
    if (groups_ > 1) {
      product.batch.push_back(pool_.axis("g", pool_.integer(groups_)));
      channel = pool_.add(pool_.mul(product.batch[1], channels()), product.k);
    }
    product.axes = product.batch;
    product.axes.push_back(product.m[0]);
    product.axes.insert(product.axes.end(), product.n.begin(), product.n.end());
    product.a = read(1, {pool_.add(pool_.mul(channel, depth), product.m[0])});
    builder_.flat.keep(product.a);
    std::vector<ir::Expr> index = {product.batch[0], channel};
    index.insert(index.end(), product.n.begin(), product.n.end());
    product.b = {builder_.flat.flat(read(0, index))};
    product.epilogue = pool_.leaf(ir::LeafKind::Product, 0, DType::Float32);
    const std::vector<ir::Expr> sizes = extents_of(pool_, product.axes);
    const int64_t scratch = builder_.add_scratch(DType::Float32, product_of(pool_, sizes));
    add_product_at(builder_, product, scratch, row_major(pool_, product.axes, sizes),
                   "inputs of a transposed convolution under its taps\n");
    ir::Expr tap = row_major(pool_, taps, tail(view_.shape(1))), filter = output_[1];
    std::vector<ir::Expr> place = {output_[0]};
    if (groups_ > 1) {
      place.push_back(pool_.floordiv(filter, filters_));
      filter = pool_.floormod(filter, filters_);
    }
    place.push_back(pool_.add(pool_.mul(filter, taps_), tap));
    place.insert(place.end(), pixels.begin(), pixels.end());
    ir::Expr element = pool_.read(scratch, DType::Float32, {row_major(pool_, place, sizes)});
    builder_.flat.keep(element);
    return element;
  }

  // A thread sums all channels of a group.
  ir::Expr from_channels(const std::vector<ir::Expr>& taps, const std::vector<ir::Expr>& pixels,
                         std::vector<ir::Expr>& loops) {
    ir::Expr channel = pool_.axis("c", channels());
    ir::Expr group = pool_.floordiv(output_[1], filters_);
    ir::Expr from = pool_.add(pool_.mul(group, channels()), channel);
    std::vector<ir::Expr> weight = {from, pool_.floormod(output_[1], filters_)},
                          x = {output_[0], from};
    weight.insert(weight.end(), taps.begin(), taps.end());
    x.insert(x.end(), pixels.begin(), pixels.end());
    loops.push_back(channel);
    return pool_.mul(read(0, x), pool_.cast(view_.dtype(0), read(1, weight)));
  }

  StepBuilder& builder_;
  const ops::NodeView& view_;
  ir::ExprPool& pool_;
  ir::ValueId value_;
  std::vector<int64_t> kernel_, stride_, dilation_;
  std::vector<ir::Expr> output_;
  int64_t groups_ = 1;
  ir::Expr filters_ = nullptr, taps_ = nullptr;  // of a group; of a filter
};

// Microseconds, at nominal sizes where the builder does not know them.
double time_of_way(const StepBuilder& builder, const ops::NodeView& view, bool products) {
  constexpr int64_t kNominal = 64;
  StepBuilder trial = builder.trial();
  for (ir::Expr size : view.shape(0)) {
    if (builder.sizes.of(size) < 0) trial.sizes = KnownSizes::all(kNominal);
  }
  TransposedConvolution(trial, view).build(products);
  double time = 0;
  for (const GpuCall& call : trial.result.calls) {
    time += time_of(call, trial.sizes, trial.target);
  }
  return time;
}

}  // namespace

void generate_conv_transpose(StepBuilder& builder, const ops::NodeView& view) {
  // Groups of one channel have nothing to contract.
  const int64_t groups = view.integer("group", 1);
  const bool alone = view.shape(1)[0]->is_constant(groups);
  const bool products = groups == 1 || (!alone && time_of_way(builder, view, true) <=
                                                      time_of_way(builder, view, false));
  TransposedConvolution(builder, view).build(products);
}

}  // namespace redfuser::codegen
