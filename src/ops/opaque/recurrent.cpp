// Recurrent layers: RNN, GRU and LSTM. Each step depends on the state of the step before, so they
// have no lowering.
#include "base/error.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

// Weights have `gates` rows per hidden unit; the states are h and, if `states` is 2, the cell.
template <int gates, int states>
void infer_recurrent(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  for (int i = 0; i < 3; ++i) {
    if (context.rank(i) != 3) context.fail(fmt::format("input {} must have rank 3", i));
    if (!is_float(context.dtype(i))) {
      context.fail(fmt::format("dtype {} is not supported", name_of(context.dtype(i))));
    }
  }
  const std::string direction = context.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    context.fail(fmt::format("direction \"{}\" is not supported", direction));
  }
  const bool batch_first = context.integer("layout", 0) != 0;
  const auto& x = context.shape(0);
  ir::Expr steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1];
  ir::Expr directions = pool.integer(direction == "bidirectional" ? 2 : 1);
  ir::Expr hidden = context.shape(2)[2], rows = pool.mul(pool.integer(gates), hidden);
  if (context.has("hidden_size")) {
    context.require_equal(hidden, pool.integer(context.integer("hidden_size", 0)),
                          "the columns of input 2 and hidden_size");
  }
  context.require_equal(context.shape(1)[0], directions, "the directions of input 1");
  context.require_equal(context.shape(2)[0], directions, "the directions of input 2");
  context.require_equal(context.shape(1)[1], rows, "the rows of input 1");
  context.require_equal(context.shape(2)[1], rows, "the rows of input 2");
  context.require_equal(context.shape(1)[2], x[2], "the columns of input 1");
  const Shape state =
      batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  for (int i = 5; i < 5 + states; ++i) {
    if (!context.has_input(i)) continue;
    if (context.rank(i) != 3) context.fail(fmt::format("input {} must have rank 3", i));
    for (int d = 0; d < 3; ++d) {
      context.require_equal(context.shape(i)[d], state[d], fmt::format("input {}", i));
    }
  }
  context.set(0, context.dtype(0),
              batch_first ? Shape{batch, steps, directions, hidden}
                          : Shape{steps, directions, batch, hidden});
  for (int i = 1; i <= states; ++i) context.set(i, context.dtype(0), state);
}

constexpr OpDef kOps[] = {
    {"RNN", "", 1, infer_recurrent<1, 1>, nullptr},
    {"GRU", "", 1, infer_recurrent<3, 1>, nullptr},
    {"LSTM", "", 1, infer_recurrent<4, 2>, nullptr},
};

}  // namespace

std::span<const OpDef> recurrent_ops() { return kOps; }

}  // namespace redfuser::ops
