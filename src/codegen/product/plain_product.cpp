#include "codegen/product/plain_product.h"

#include "codegen/contraction/contraction_kernel.h"
#include "codegen/product/library_product.h"
#include "codegen/product/library_time.h"

namespace redfuser::codegen {
void add_plain_product(StepBuilder& builder, const fuse::ProductStep& step,
                       const std::string& comment) {
  ir::ExprPool& pool = builder.pool();
  const auto factor = [&](ir::Expr operand) {
    return is_low_bit_float(operand->dtype) ? pool.cast(DType::Float32, operand) : operand;
  };
  ir::Expr body = pool.rewrite(step.epilogue, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Leaf || e->leaf_kind != ir::LeafKind::Product) return nullptr;
    ir::Expr term = pool.mul(factor(step.a), factor(step.b.at(static_cast<size_t>(e->integer))));
    return pool.cast(e->dtype, pool.reduce(ir::Reduction::Sum, step.k, term));
  });
  add_reductions(builder, kPlainProductFamily, builder.memory_axes(step.value, step.axes),
                 {step.value, builder.flat.flat(body), builder.offset_of(step.value, step.axes)},
                 comment);
}

bool plain_product_pays(const StepBuilder& builder, const fuse::ProductStep& step,
                        const std::string& comment) {
  // What products of few elements take is mostly the launch: estimates do not tell them apart.
  constexpr double kDoubt = 2;
  constexpr int64_t kSmall = 1024, kMany = 1024;  // multiply-adds; for each size of a run
  constexpr int64_t kFewTerms = 8;  // of a result: half of what an instruction multiplies
  ir::ExprPool& pool = builder.pool();
  std::vector<ir::Expr> axes = step.m;
  axes.insert(axes.end(), step.n.begin(), step.n.end());
  axes.push_back(step.k);
  ir::Expr terms = product_of(pool, extents_of(pool, axes));
  if (!terms->is_constant()) return false;
  if (terms->integer > kSmall && step.k->extent()->integer > kFewTerms) return false;
  if (builder.leaves_out(kPlainProductFamily) || builder.leaves_out_offer(kPlainProductFamily)) {
    return false;
  }
  StepBuilder plain = builder.trial(), library = builder.trial();
  plain.sizes = library.sizes = KnownSizes::all(kMany);
  add_plain_product(plain, step, comment);
  add_product(library, step, step.value, comment);
  return kDoubt * time_of(plain.result, plain.sizes, plain.target) <
         time_of(library.result, library.sizes, library.target);
}

}  // namespace redfuser::codegen
