// Shape rules of operators whose values are drawn at every run.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

DType drawn_type(const NodeView& view, DType fallback) {
  const DType dtype = type_argument(view, "dtype", fallback);
  if (!is_float(dtype)) view.fail(fmt::format("random {} is not supported", name_of(dtype)));
  return dtype;
}

void infer_random(InferContext& context) {
  Shape shape;
  for (const int64_t size : context.integers("shape", {})) {
    if (size < 0) context.fail("a negative size");
    shape.push_back(context.pool().integer(size));
  }
  context.set(0, drawn_type(context, DType::Float32), std::move(shape));
}

void infer_random_like(InferContext& context) {
  const DType like = context.dtype(0);
  context.set(0, drawn_type(context, is_float(like) ? like : DType::Float32), context.shape(0));
}

void infer_multinomial(InferContext& context) {
  if (context.rank(0) != 2 || !is_float(context.dtype(0))) {
    context.fail("the input must be floating [batch,classes]");
  }
  const DType dtype = type_argument(context, "dtype", DType::Int32);
  if (dtype != DType::Int32 && dtype != DType::Int64) {
    context.fail(fmt::format("a sample of {} is not supported", name_of(dtype)));
  }
  context.set(0, dtype,
              {context.shape(0)[0], context.pool().integer(context.integer("sample_size", 1))});
}

constexpr OpDef kOps[] = {
    {"RandomNormal", "", 1, infer_random, nullptr, true},
    {"RandomUniform", "", 1, infer_random, nullptr, true},
    {"RandomNormalLike", "", 1, infer_random_like, nullptr, true},
    {"RandomUniformLike", "", 1, infer_random_like, nullptr, true},
    {"Multinomial", "", 7, infer_multinomial, nullptr, true},
};

}  // namespace

std::span<const OpDef> random_ops() { return kOps; }

}  // namespace redfuser::ops
