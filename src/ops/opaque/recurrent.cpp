// Recurrent layers: RNN, GRU, LSTM, and com.microsoft's LSTM of 8-bit weights. Each step depends on
// the state of the step before, so they have no lowering.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

struct LayerSizes {
  bool batch_first;
  ir::Expr steps, batch, input, directions, hidden;
};

LayerSizes sizes_of(InferContext& context) {
  for (int i = 0; i < 3; ++i) {
    if (context.rank(i) != 3) context.fail(fmt::format("input {} must have rank 3", i));
  }
  const std::string direction = context.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    context.fail(fmt::format("direction \"{}\" is not supported", direction));
  }
  ir::ExprPool& pool = context.pool();
  const bool batch_first = context.integer("layout", 0) != 0;
  const auto& x = context.shape(0);
  return {batch_first,
          x[batch_first ? 1 : 0],
          x[batch_first ? 0 : 1],
          x[2],
          pool.integer(direction == "bidirectional" ? 2 : 1),
          context.shape(2)[2]};
}

// Of the initial states, inputs 5 and, if `states` is 2, 6; and of the outputs.
void infer_states(InferContext& context, const LayerSizes& sizes, int states) {
  const Shape state = sizes.batch_first ? Shape{sizes.batch, sizes.directions, sizes.hidden}
                                        : Shape{sizes.directions, sizes.batch, sizes.hidden};
  for (int i = 5; i < 5 + states; ++i) {
    if (!context.has_input(i)) continue;
    if (context.rank(i) != 3) context.fail(fmt::format("input {} must have rank 3", i));
    for (int d = 0; d < 3; ++d) {
      context.require_equal(context.shape(i)[d], state[d], fmt::format("input {}", i));
    }
  }
  context.set(0, context.dtype(0),
              sizes.batch_first ? Shape{sizes.batch, sizes.steps, sizes.directions, sizes.hidden}
                                : Shape{sizes.steps, sizes.directions, sizes.batch, sizes.hidden});
  for (int i = 1; i <= states; ++i) context.set(i, context.dtype(0), state);
}

void require_hidden_size(InferContext& context, const LayerSizes& sizes) {
  if (!context.has("hidden_size")) return;
  const ir::Expr given = context.pool().integer(context.integer("hidden_size", 0));
  context.require_equal(sizes.hidden, given, "the columns of input 2 and hidden_size");
}

// Weights have `gates` rows per hidden unit; the states are h and, if `states` is 2, the cell.
template <int gates, int states>
void infer_recurrent(InferContext& context) {
  const LayerSizes sizes = sizes_of(context);
  for (int i = 0; i < 3; ++i) {
    if (!is_float(context.dtype(i))) {
      context.fail(fmt::format("dtype {} is not supported", name_of(context.dtype(i))));
    }
  }
  require_hidden_size(context, sizes);
  const ir::Expr rows = context.pool().mul(context.pool().integer(gates), sizes.hidden);
  context.require_equal(context.shape(1)[0], sizes.directions, "the directions of input 1");
  context.require_equal(context.shape(2)[0], sizes.directions, "the directions of input 2");
  context.require_equal(context.shape(1)[1], rows, "the rows of input 1");
  context.require_equal(context.shape(2)[1], rows, "the rows of input 2");
  context.require_equal(context.shape(1)[2], sizes.input, "the columns of input 1");
  infer_states(context, sizes, states);
}

std::string name_of_input(const NodeView& node, int input) {
  return fmt::format("input {} (\"{}\")", input, node.input(input).name);
}

// The scale and the zero point of the weights `input`: one for each direction, or for each of its
// columns.
void require_parameters(InferContext& context, const LayerSizes& sizes, int input, int scale,
                        ir::Expr columns) {
  const int zero = scale + 1;
  if (context.dtype(scale) != DType::Float32) {
    context.fail(fmt::format("{} must be float32", name_of_input(context, scale)));
  }
  if (context.dtype(zero) != context.dtype(input)) {
    context.fail(fmt::format("{} must be {}, as the weights are", name_of_input(context, zero),
                             name_of(context.dtype(input))));
  }
  for (const int i : {scale, zero}) {
    if (context.rank(i) != context.rank(scale) || context.rank(i) < 1 || context.rank(i) > 2) {
      context.fail(fmt::format("{} must have rank 1 or 2, as the other parameter of the weights",
                               name_of_input(context, i)));
    }
    context.require_equal(context.shape(i)[0], sizes.directions, name_of_input(context, i));
    if (context.rank(i) == 2) {
      context.require_equal(context.shape(i)[1], columns, name_of_input(context, i));
    }
  }
}

// Weights are transposed: they have the gates as columns.
void infer_quantized_lstm(InferContext& context) {
  LayerSizes sizes = sizes_of(context);
  sizes.hidden = context.shape(2)[1];
  require_hidden_size(context, sizes);
  const ir::Expr columns = context.pool().mul(context.pool().integer(4), sizes.hidden);
  if (context.dtype(0) != DType::Float32) {
    context.fail(fmt::format("{} must be float32", name_of_input(context, 0)));
  }
  for (const int i : {1, 2}) {
    if (context.dtype(i) != DType::Int8 && context.dtype(i) != DType::UInt8) {
      context.fail(fmt::format("{} must be int8 or uint8", name_of_input(context, i)));
    }
    context.require_equal(context.shape(i)[0], sizes.directions, name_of_input(context, i));
    context.require_equal(context.shape(i)[2], columns, name_of_input(context, i));
    require_parameters(context, sizes, i, 6 + 2 * i, columns);
  }
  context.require_equal(context.shape(1)[1], sizes.input, "the rows of input 1");
  infer_states(context, sizes, 2);
}

// The lengths of the sequences, where they are given.
std::vector<Positions> sequence_lengths(const LowerContext& context) {
  if (!context.has_input(4)) return {};
  const bool batch_first = context.integer("layout", 0) != 0;
  Positions lengths = index_positions(context, 4, context.shape(0)[batch_first ? 1 : 0]);
  lengths.what = "length";
  lengths.low = context.pool().integer(0);
  lengths.high = lengths.size;
  return {std::move(lengths)};
}

constexpr OpDef kOps[] = {
    with_positions({"RNN", "", 1, infer_recurrent<1, 1>, nullptr}, sequence_lengths),
    with_positions({"GRU", "", 1, infer_recurrent<3, 1>, nullptr}, sequence_lengths),
    with_positions({"LSTM", "", 1, infer_recurrent<4, 2>, nullptr}, sequence_lengths),
    {"DynamicQuantizeLSTM", "com.microsoft", 1, infer_quantized_lstm, nullptr},
};

}  // namespace

std::span<const OpDef> recurrent_ops() { return kOps; }

}  // namespace redfuser::ops
