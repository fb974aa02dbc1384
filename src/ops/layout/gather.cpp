// Reads at positions that are data. Negative positions count from the end. A run that can inspect
// the positions refuses those outside the tensor; they are clamped in any case, so that every read
// stays within its tensor.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

int gather_axis(const NodeView& view) { return view.axis(view.integer("axis", 0), view.rank(0)); }

std::vector<Positions> gather_positions(const LowerContext& context) {
  ir::Expr size = context.shape(0)[gather_axis(context)];
  // Inference checks constant positions.
  if (context.input(1).is_constant() && size->is_constant()) return {};
  return {index_positions(context, 1, size)};
}

void infer_gather(InferContext& context) {
  const int axis = gather_axis(context);
  check_indices(context, 1, {&context.shape(0)[axis], 1});
  const Shape& data = context.shape(0);
  Shape shape(data.begin(), data.begin() + axis);
  shape.insert(shape.end(), context.shape(1).begin(), context.shape(1).end());
  shape.insert(shape.end(), data.begin() + axis + 1, data.end());
  context.set(0, context.dtype(0), std::move(shape));
}

ir::Expr lower_gather(LowerContext& context) {
  const int axis = gather_axis(context), count = context.rank(1);
  const auto index = context.index();
  std::vector<ir::Expr> at(index.begin(), index.begin() + axis);
  ir::Expr position = context.read(1, {index.begin() + axis, index.begin() + axis + count});
  at.push_back(data_index(context.pool(), position, context.shape(0)[axis]));
  at.insert(at.end(), index.begin() + axis + count, index.end());
  return context.read(0, std::move(at));
}

void infer_gather_elements(InferContext& context) {
  const int axis = gather_axis(context);
  if (context.rank(1) != context.rank(0)) context.fail("data and indices differ in rank");
  check_indices(context, 1, {&context.shape(0)[axis], 1});
  for (int d = 0; d < context.rank(0); ++d) {
    if (d == axis) continue;
    context.require_at_most(context.shape(1)[d], context.shape(0)[d],
                            fmt::format("dimension {} of indices and data", d));
  }
  context.set(0, context.dtype(0), context.shape(1));
}

ir::Expr lower_gather_elements(LowerContext& context) {
  const int axis = gather_axis(context);
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  ir::Expr position = context.read(1, index);
  for (int d = 0; d < context.rank(0); ++d) {
    ir::Expr size = context.shape(0)[d];
    if (d == axis) {
      index[d] = data_index(context.pool(), position, size);
    } else if (size != context.shape(1)[d]) {
      index[d] = clamp_index(context.pool(), index[d], size);
    }
  }
  return context.read(0, std::move(index));
}

// The tuple length of GatherND: the last dimension of the indices.
int tuple_length(const NodeView& view) {
  const Shape& indices = view.shape(1);
  const auto known = indices.empty() ? std::optional<int64_t>(0) : constant_of(indices.back());
  if (!known) view.fail_unknown("the length of the index tuples is known only at run time");
  const int64_t length = *known;
  const int64_t batch = view.integer("batch_dims", 0);
  if (length < 1 || batch < 0 || batch >= view.rank(1) || length > view.rank(0) - batch) {
    view.fail(fmt::format("indices {} with batch_dims {} do not fit data {}",
                          shape_text(view.pool(), indices), batch,
                          shape_text(view.pool(), view.shape(0))));
  }
  return static_cast<int>(length);
}

void infer_gather_nd(InferContext& context) {
  const int length = tuple_length(context);
  const auto batch = static_cast<int>(context.integer("batch_dims", 0));
  check_indices(context, 1, std::span(context.shape(0)).subspan(batch, length));
  const Shape &data = context.shape(0), &indices = context.shape(1);
  for (int d = 0; d < batch; ++d) {
    context.require_equal(data[d], indices[d], fmt::format("batch dimension {}", d));
  }
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), data.begin() + batch + length, data.end());
  context.set(0, context.dtype(0), std::move(shape));
}

ir::Expr lower_gather_nd(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const int length = tuple_length(context), outer = context.rank(1) - 1;
  const auto batch = static_cast<int>(context.integer("batch_dims", 0));
  const auto index = context.index();
  std::vector<ir::Expr> at(index.begin(), index.begin() + batch);
  for (int i = 0; i < length; ++i) {
    std::vector<ir::Expr> tuple(index.begin(), index.begin() + outer);
    tuple.push_back(pool.integer(i));
    at.push_back(data_index(pool, context.read(1, std::move(tuple)), context.shape(0)[batch + i]));
  }
  at.insert(at.end(), index.begin() + outer, index.end());
  return context.read(0, std::move(at));
}

std::vector<Positions> gather_nd_positions(const LowerContext& context) {
  const int64_t batch = context.integer("batch_dims", 0);
  const auto length = static_cast<size_t>(tuple_length(context));
  return tuple_positions(context, 1, std::span(context.shape(0)).subspan(batch, length));
}

struct SequenceAxes {
  int batch, time;
};

SequenceAxes sequence_axes(const NodeView& view) {
  const int64_t batch = view.integer("batch_axis", 1), time = view.integer("time_axis", 0);
  if (!(batch == 0 && time == 1) && !(batch == 1 && time == 0)) {
    view.fail("batch_axis and time_axis must be 0 and 1");
  }
  return {static_cast<int>(batch), static_cast<int>(time)};
}

void infer_reverse_sequence(InferContext& context) {
  if (context.rank(0) < 2) context.fail("the input must have batch and time dimensions");
  if (context.rank(1) != 1) context.fail("the lengths must be a vector");
  context.require_equal(context.shape(1)[0], context.shape(0)[sequence_axes(context).batch],
                        "the lengths and the batch");
  context.set(0, context.dtype(0), context.shape(0));
}

// The first `length` elements of a sequence in reverse; the rest stay.
ir::Expr lower_reverse_sequence(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const SequenceAxes axes = sequence_axes(context);
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  ir::Expr length = context.read(1, {index[axes.batch]}), time = index[axes.time];
  ir::Expr mirrored = pool.sub(pool.sub(length, pool.integer(1)), time);
  ir::Expr from = pool.select(less(pool, time, length), mirrored, time);
  index[axes.time] = clamp_index(pool, from, context.shape(0)[axes.time]);
  return context.read(0, std::move(index));
}

std::vector<Positions> sequence_lengths(const LowerContext& context) {
  ir::Expr size = context.shape(0)[sequence_axes(context).time];
  Positions lengths = index_positions(context, 1, size);
  lengths.what = "length";
  lengths.low = context.pool().integer(0);
  lengths.high = size;
  return {std::move(lengths)};
}

int one_hot_axis(const NodeView& view) {
  return view.axis(view.integer("axis", -1), view.rank(0) + 1);
}

void infer_one_hot(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto count = constant_count(context.shape(2));
  if (!count) context.fail_unknown("the number of values is known only at run time");
  if (count != 2 || context.rank(2) != 1) context.fail("values must hold two elements");
  Shape shape = context.shape(0);
  shape.insert(shape.begin() + one_hot_axis(context),
               pool.cast(DType::Int64, only_element(context, 1)));
  context.set(0, context.dtype(2), std::move(shape));
}

ir::Expr lower_one_hot(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const int axis = one_hot_axis(context);
  ir::Expr depth = context.result().shape[axis];
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  index.erase(index.begin() + axis);
  ir::Expr hot = pool.cast(DType::Int64, context.read(0, std::move(index)));
  hot = from_end(pool, hot, depth);
  return pool.select(equal(pool, hot, context.index()[axis]), context.read(2, {pool.integer(1)}),
                     context.read(2, {pool.integer(0)}));
}

constexpr OpDef kOps[] = {
    with_positions({"Gather", "", 1, infer_gather, lower_gather}, gather_positions),
    with_positions({"GatherElements", "", 11, infer_gather_elements, lower_gather_elements},
                   gather_positions),
    with_positions({"GatherND", "", 11, infer_gather_nd, lower_gather_nd}, gather_nd_positions),
    {"OneHot", "", 9, infer_one_hot, lower_one_hot},
    with_positions({"ReverseSequence", "", 10, infer_reverse_sequence, lower_reverse_sequence},
                   sequence_lengths),
};

}  // namespace

std::span<const OpDef> gather_ops() { return kOps; }

}  // namespace redfuser::ops
