// Shape rules of transforms of signals, of matrices and of whole tensors.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/opaque/signal_elements.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

ir::Expr one_integer(InferContext& context, int input) {
  const auto value = context.constant_integers(input);
  if (value && value->size() == 1) return context.pool().integer(value->front());
  return nullptr;
}

// Bins of a spectrum of `length` points: all, or the first half, which determines the rest for real
// signals.
ir::Expr bins_of(ir::ExprPool& pool, ir::Expr length, bool onesided) {
  if (!onesided) return length;
  return pool.add(pool.floordiv(length, pool.integer(2)), pool.integer(1));
}

// [..., n, ..., 1 or 2] -> [..., bins, ..., 2]; a one-sided inverse gives a real signal.
void infer_dft(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  const int rank = context.rank(0);
  if (rank < 2) context.fail("the input has no axis beside that of real and imaginary parts");
  const int axis = dft_axis(context);
  const bool onesided = context.integer("onesided", 0) != 0;
  const bool real_result = onesided && context.integer("inverse", 0) != 0;
  Shape shape = context.shape(0);
  ir::Expr length = shape[static_cast<size_t>(axis)];
  if (real_result) length = pool.mul(pool.sub(length, pool.integer(1)), pool.integer(2));
  if (context.has_input(1)) length = one_integer(context, 1);
  shape[static_cast<size_t>(axis)] = length == nullptr ? context.fresh_size("bins")
                                     : real_result     ? length
                                                       : bins_of(pool, length, onesided);
  shape.back() = pool.integer(real_result ? 1 : 2);
  context.set(0, context.dtype(0), std::move(shape));
}

void infer_stft(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  if (context.rank(0) < 2) context.fail("the signal must be [batch,length,1 or 2]");
  ir::Expr step = one_integer(context, 1), length = nullptr;
  if (context.has_input(3)) {
    length = one_integer(context, 3);
  } else if (context.has_input(2)) {
    if (context.rank(2) != 1) context.fail("the window must be a row of numbers");
    length = context.shape(2)[0];
  } else {
    context.fail("it needs a window or a frame length");
  }
  ir::Expr frames = context.fresh_size("frames");
  if (step && length) {
    if (step->is_constant() && step->integer < 1) context.fail("the frame step must be positive");
    ir::Expr rest = pool.sub(context.shape(0)[1], length);
    frames = pool.add(pool.floordiv(rest, step), pool.integer(1));
  }
  const bool onesided = context.integer("onesided", 1) != 0;
  ir::Expr bins = length ? bins_of(pool, length, onesided) : context.fresh_size("bins");
  context.set(0, context.dtype(0), {context.shape(0)[0], frames, bins, pool.integer(2)});
}

void infer_mel_weight_matrix(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  ir::Expr mels = one_integer(context, 0), length = one_integer(context, 1);
  if (!mels) mels = context.fresh_size("mels");
  ir::Expr bins = length ? bins_of(pool, length, true) : context.fresh_size("bins");
  const DType dtype = type_argument(context, "output_datatype", DType::Float32);
  if (!is_float(dtype)) {
    context.fail(fmt::format("output_datatype {} is not supported", name_of(dtype)));
  }
  context.set(0, dtype, {bins, mels});
}

void infer_det(InferContext& context) {
  const int rank = context.rank(0);
  if (rank < 2 || !is_float(context.dtype(0))) context.fail("the input must be matrices of floats");
  context.require_equal(context.shape(0)[rank - 2], context.shape(0)[rank - 1], "matrix sides");
  context.set(0, context.dtype(0), {context.shape(0).begin(), context.shape(0).end() - 2});
}

void infer_bit_cast(InferContext& context) {
  const DType to = type_argument(context, "to", DType::Undefined);
  const DType from = context.dtype(0);
  if (bits_of(to) == 0 || bits_of(from) != bits_of(to)) {
    context.fail(fmt::format("{} and {} differ in width", name_of(from), name_of(to)));
  }
  context.set(0, to, context.shape(0));
}

constexpr OpDef kOps[] = {
    with_element({"DFT", "", 17, infer_dft, nullptr}, element_of_dft),
    with_element({"STFT", "", 17, infer_stft, nullptr}, element_of_stft),
    {"MelWeightMatrix", "", 17, infer_mel_weight_matrix, nullptr},
    with_element({"Det", "", 11, infer_det, nullptr}, element_of_det),
    {"BitCast", "", 26, infer_bit_cast, nullptr},
};

}  // namespace

std::span<const OpDef> signal_ops() { return kOps; }

}  // namespace redfuser::ops
