// Normalisations without a function body in ONNX's schemas (of these opsets).
#include "base/error.h"
#include "ops/families.h"
#include "ops/loops.h"

namespace redfuser::ops {
namespace {

void infer_float_same(InferContext& context) {
  if (!is_float(context.dtype(0))) {
    context.fail(fmt::format("dtype {} is not supported", name_of(context.dtype(0))));
  }
  context.set(0, context.dtype(0), context.shape(0));
}

// Loops over dimensions [first, last) around the result's element.
Loops loops_over(LowerContext& context, int first, int last) {
  std::vector<bool> reduced(context.shape(0).size());
  for (int d = first; d < last; ++d) reduced[d] = true;
  return make_loops(context, context.shape(0), reduced,
                    {context.index().begin(), context.index().end()});
}

// Before opset 13 the input is taken as a matrix whose rows are the dimensions from `axis` on.
Loops softmax_loops(LowerContext& context) {
  const int rank = context.rank(0);
  const bool matrix = context.opset() < 13;
  const int axis = context.axis(context.integer("axis", matrix ? 1 : -1), rank);
  return loops_over(context, axis, matrix ? rank : axis + 1);
}

struct Softmax {
  ir::Expr shifted;  // x - max x
  ir::Expr sum;      // Σ exp(x - max x)
};

Softmax softmax_parts(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Loops loops = softmax_loops(context);
  ir::Expr row = context.read(0, loops.index);
  ir::Expr max = reduce_over(pool, ir::Reduction::Max, loops, row);
  ir::Expr exp = pool.make(ir::ExprOp::Exp, {pool.sub(row, max)});
  return {pool.sub(context.read_broadcast(0), max),
          reduce_over(pool, ir::Reduction::Sum, loops, exp)};
}

ir::Expr lower_softmax(LowerContext& context) {
  const Softmax parts = softmax_parts(context);
  return context.pool().div(context.pool().make(ir::ExprOp::Exp, {parts.shifted}), parts.sum);
}

ir::Expr lower_log_softmax(LowerContext& context) {
  const Softmax parts = softmax_parts(context);
  return context.pool().sub(parts.shifted, context.pool().make(ir::ExprOp::Log, {parts.sum}));
}

// One at the first maximum of the row, zero elsewhere. The position in the row is compared
// dimension by dimension.
ir::Expr lower_hardmax(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  const Loops loops = softmax_loops(context);
  if (loops.axes.empty()) return pool.number(1, dtype);
  ir::Expr loop = loops.axes[0];
  ir::Expr first =
      pool.reduce(ir::Reduction::ArgMax, loop, context.read(0, loops.index), nullptr, true);
  ir::Expr here = pool.boolean(true);
  for (size_t d = 0; d < loops.index.size(); ++d) {
    if (!loops.index[d]->depends_on(loop)) continue;
    ir::Expr at = pool.substitute(loops.index[d], {{loop, first}});
    here = pool.make(ir::ExprOp::And, {here, equal(pool, at, context.index()[d])});
  }
  return pool.select(here, pool.number(1, dtype), pool.number(0, dtype));
}

void infer_batch_normalization(InferContext& context) {
  const bool training = context.integer("training_mode", 0) != 0;
  if (context.opset() < 7 && context.integer("is_test", 0) == 0) {
    context.fail("training (is_test 0) is not supported before opset 14");
  }
  if (context.integer("spatial", 1) == 0) context.fail("spatial 0 is not supported");
  if (context.rank(0) < 2) context.fail("the input must have a channel dimension");
  for (int i = 1; i <= 4; ++i) {
    if (context.rank(i) != 1) context.fail(fmt::format("input {} must be a vector", i));
    context.require_equal(context.shape(i)[0], context.shape(0)[1],
                          fmt::format("input {} and the channels", i));
  }
  for (int i = 1; i < context.output_count(); ++i) {
    if (!context.has_output(i)) continue;
    if (!training || i > 2) context.fail("training outputs need training_mode 1");
    context.set(i, context.dtype(i + 2), context.shape(i + 2));
  }
  infer_float_same(context);
}

// The mean of a channel and that of the squared distance to it.
struct ChannelMoments {
  ir::Expr mean, variance;
};

ChannelMoments channel_moments(LowerContext& context, ir::Expr channel) {
  ir::ExprPool& pool = context.pool();
  std::vector<bool> reduced(context.shape(0).size(), true);
  reduced[1] = false;
  std::vector<ir::Expr> index(reduced.size());
  index[1] = channel;
  const Loops loops = make_loops(context, context.shape(0), reduced, std::move(index));
  ir::Expr x = context.read(0, loops.index), mean = mean_over(pool, loops, x);
  ir::Expr centred = pool.sub(x, mean);
  return {mean, mean_over(pool, loops, pool.mul(centred, centred))};
}

// running = running · momentum + batch · (1 - momentum)
ir::Expr lower_running_moment(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  const ChannelMoments moments = channel_moments(context, context.index()[0]);
  const double momentum = context.real("momentum", 0.9f);
  ir::Expr batch = pool.cast(dtype, context.output() == 1 ? moments.mean : moments.variance);
  ir::Expr running = context.read(context.output() + 2, {context.index()[0]});
  return pool.add(pool.mul(running, pool.number(momentum, dtype)),
                  pool.mul(batch, pool.number(1 - momentum, dtype)));
}

// (x - mean) · (scale / sqrt(var + epsilon)) + bias, per channel; in training the moments are the
// batch's own.
ir::Expr lower_batch_normalization(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const bool training = context.integer("training_mode", 0) != 0;
  if (context.output() != 0) return lower_running_moment(context);
  const DType dtype = context.result().dtype;
  auto channel = [&](int input) {
    return pool.cast(dtype, context.read(input, {context.index()[1]}));
  };
  ir::Expr epsilon = pool.number(context.real("epsilon", 1e-5f), dtype);
  ChannelMoments moments;
  if (training) {
    moments = channel_moments(context, context.index()[1]);
  } else {
    moments = {channel(3), channel(4)};
  }
  ir::Expr deviation = pool.make(ir::ExprOp::Sqrt, {pool.add(moments.variance, epsilon)});
  ir::Expr centred = pool.sub(context.read_broadcast(0), moments.mean);
  return pool.add(pool.mul(centred, pool.div(channel(1), deviation)), channel(2));
}

void infer_instance_normalization(InferContext& context) {
  if (context.rank(0) < 3) context.fail("the input must have spatial dimensions");
  for (int i = 1; i <= 2; ++i) {
    if (context.rank(i) != 1) context.fail(fmt::format("input {} must be a vector", i));
    context.require_equal(context.shape(i)[0], context.shape(0)[1],
                          fmt::format("input {} and the channels", i));
  }
  infer_float_same(context);
}

ir::Expr lower_instance_normalization(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Loops loops = loops_over(context, 2, context.rank(0));
  ir::Expr x = context.read(0, loops.index), mean = mean_over(pool, loops, x);
  ir::Expr centred = pool.sub(x, mean);
  ir::Expr variance = mean_over(pool, loops, pool.mul(centred, centred));
  ir::Expr epsilon = pool.number(context.real("epsilon", 1e-5f), x->dtype);
  ir::Expr deviation = pool.make(ir::ExprOp::Sqrt, {pool.add(variance, epsilon)});
  ir::Expr scale = context.read(1, {context.index()[1]}),
           bias = context.read(2, {context.index()[1]});
  ir::Expr shifted = pool.sub(context.read_broadcast(0), mean);
  return pool.add(pool.mul(shifted, pool.div(scale, deviation)), bias);
}

void infer_lp_normalization(InferContext& context) {
  const int64_t p = context.integer("p", 2);
  if (p != 1 && p != 2) context.fail(fmt::format("p = {} is not supported", p));
  context.axis(context.integer("axis", -1), context.rank(0));
  infer_float_same(context);
}

// x / |x|, and 0 where the norm is 0
ir::Expr lower_lp_normalization(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const int axis = context.axis(context.integer("axis", -1), context.rank(0));
  const Loops loops = loops_over(context, axis, axis + 1);
  ir::Expr x = context.read(0, loops.index), norm;
  if (context.integer("p", 2) == 1) {
    norm = reduce_over(pool, ir::Reduction::Sum, loops, pool.make(ir::ExprOp::Abs, {x}));
  } else {
    norm =
        pool.make(ir::ExprOp::Sqrt, {reduce_over(pool, ir::Reduction::Sum, loops, pool.mul(x, x))});
  }
  ir::Expr zero = pool.number(0, x->dtype);
  return pool.select(pool.make(ir::ExprOp::Equal, {norm, zero}), zero,
                     pool.div(context.read_broadcast(0), norm));
}

// Neighbours on each side if the number of channels is symbolic.
constexpr int64_t kMaxNeighbours = 1 << 16;

void infer_lrn(InferContext& context) {
  if (context.rank(0) < 2) context.fail("the input must have a channel dimension");
  const int64_t size = context.integer("size", 0);
  if (size < 1) context.fail("size must be positive");
  if (!context.shape(0)[1]->is_constant() && size > kMaxNeighbours) {
    context.fail(fmt::format("size {} is too large", size));
  }
  infer_float_same(context);
}

// x / (bias + alpha/size · Σ x²)^beta, the sum over `size` channels around the element's own
ir::Expr lower_lrn(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const DType dtype = context.result().dtype;
  const int64_t size = context.integer("size", 1);
  ir::Expr channels = context.shape(0)[1];
  // Neighbours outside of the channels are left out, since `size` may be arbitrarily large.
  constexpr int64_t kMaxChannels = int64_t{1} << 40;  // more do not fit in memory
  const int64_t most =
      channels->is_constant() ? std::min(channels->integer, kMaxChannels) : kMaxNeighbours;
  const int64_t before = std::min((size - 1) / 2, most), after = std::min(size / 2, most);
  ir::Expr loop = context.loop_axis(0, pool.integer(before + after + 1));
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  ir::Expr x = context.read(0, index);
  ir::Expr channel = pool.add(pool.sub(index[1], pool.integer(before)), loop);
  ir::Expr inside = pool.make(
      ir::ExprOp::And, {less(pool, pool.integer(-1), channel), less(pool, channel, channels)});
  index[1] = clamp_index(pool, channel, channels);
  ir::Expr neighbour = context.read(0, index);
  ir::Expr square = pool.select(inside, pool.mul(neighbour, neighbour), pool.number(0, dtype));
  ir::Expr sum = pool.reduce(ir::Reduction::Sum, loop, square);
  const double scale = context.real("alpha", 1e-4f) / static_cast<double>(size);
  ir::Expr base = pool.add(pool.number(context.real("bias", 1), dtype),
                           pool.mul(sum, pool.number(scale, dtype)));
  ir::Expr power =
      pool.make(ir::ExprOp::Pow, {base, pool.number(context.real("beta", 0.75), dtype)});
  return pool.div(x, power);
}

constexpr OpDef kOps[] = {
    {"Softmax", "", 1, infer_float_same, lower_softmax},
    {"LogSoftmax", "", 1, infer_float_same, lower_log_softmax},
    {"Hardmax", "", 1, infer_float_same, lower_hardmax},
    {"BatchNormalization", "", 6, infer_batch_normalization, lower_batch_normalization},
    {"InstanceNormalization", "", 1, infer_instance_normalization, lower_instance_normalization},
    {"LRN", "", 1, infer_lrn, lower_lrn},
    {"LpNormalization", "", 1, infer_lp_normalization, lower_lp_normalization},
};

}  // namespace

std::span<const OpDef> normalization_ops() { return kOps; }

}  // namespace redfuser::ops
