// Shape rules of operators that sample images. They are opaque: src/cpu has their kernels.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/image/box_elements.h"
#include "ops/image/column_elements.h"
#include "ops/sizes.h"

namespace redfuser::ops {
namespace {

void infer_roi_align(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  if (context.rank(0) != 4 || context.rank(1) != 2 || context.rank(2) != 1) {
    context.fail("it takes an image [N,C,H,W], boxes [R,4] and batch indices [R]");
  }
  context.set(
      0, context.dtype(0),
      {context.shape(1)[0], context.shape(0)[1], pool.integer(context.integer("output_height", 1)),
       pool.integer(context.integer("output_width", 1))});
}

void infer_max_roi_pool(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  check_operand(context, 0, Operand::Float);
  const auto pooled = context.integers("pooled_shape", {});
  if (context.rank(0) != 4 || context.rank(1) != 2) {
    context.fail("it takes an image [N,C,H,W] and boxes [R,5]");
  }
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1) context.fail("pooled_shape");
  context.set(
      0, context.dtype(0),
      {context.shape(1)[0], context.shape(0)[1], pool.integer(pooled[0]), pool.integer(pooled[1])});
}

// The inverse of a pool without its overlaps.
void infer_max_unpool(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  const auto kernel = context.small_integers("kernel_shape", {});
  const size_t rank = kernel.size();
  if (rank == 0 || context.rank(0) != static_cast<int>(rank) + 2) context.fail("kernel_shape");
  const auto strides = context.small_integers("strides", std::vector<int64_t>(rank, 1));
  const auto pads = context.small_integers("pads", std::vector<int64_t>(2 * rank, 0));
  if (strides.size() != rank || pads.size() != 2 * rank) context.fail("strides or pads");
  if (const auto wanted = size_argument(context, "", 2)) {
    if (wanted->size() != rank + 2) context.fail("output_shape has another rank");
    return context.set(0, context.dtype(0), *wanted);
  }
  Shape shape{context.shape(0)[0], context.shape(0)[1]};
  for (size_t i = 0; i < rank; ++i) {
    ir::Expr before = pool.sub(context.shape(0)[i + 2], pool.integer(1));
    shape.push_back(pool.add(pool.mul(before, pool.integer(strides[i])),
                             pool.integer(kernel[i] - pads[i] - pads[rank + i])));
  }
  context.set(0, context.dtype(0), std::move(shape));
}

void infer_deform_conv(InferContext& context) {
  check_operand(context, 0, Operand::Float);
  const int rank = context.rank(0);
  if (rank != 4 || context.rank(1) != 4 || context.rank(2) != 4) {
    context.fail("images of two dimensions are supported");
  }
  context.set(0, context.dtype(0),
              {context.shape(0)[0], context.shape(1)[0], context.shape(2)[2], context.shape(2)[3]});
}

void infer_col2im(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  if (context.rank(0) != 3) context.fail("the input must be [N,C*block,blocks]");
  const auto image = size_argument(context, "", 1), block = size_argument(context, "", 2);
  if (!image || !block) context.fail("it needs image_shape and block_shape");
  ir::Expr block_size = pool.integer(1);
  for (ir::Expr size : *block) block_size = pool.mul(block_size, size);
  Shape shape{context.shape(0)[0], pool.floordiv(context.shape(0)[1], block_size)};
  shape.insert(shape.end(), image->begin(), image->end());
  context.set(0, context.dtype(0), std::move(shape));
}

constexpr OpDef kOps[] = {
    with_element({"MaxRoiPool", "", 1, infer_max_roi_pool, nullptr}, element_of_max_roi_pool),
    with_element({"RoiAlign", "", 10, infer_roi_align, nullptr}, element_of_roi_align),
    {"MaxUnpool", "", 9, infer_max_unpool, nullptr},
    with_element({"DeformConv", "", 19, infer_deform_conv, nullptr}, element_of_deform_conv),
    with_element({"Col2Im", "", 18, infer_col2im, nullptr}, element_of_col2im),
};

}  // namespace

std::span<const OpDef> image_ops() { return kOps; }

}  // namespace redfuser::ops
