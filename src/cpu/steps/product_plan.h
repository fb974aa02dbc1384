// A matrix product for fixed sizes: blocks of the result in parallel, each with its epilogue while
// it is in cache.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpu/estimate/program_time.h"
#include "cpu/steps/block_epilogue.h"
#include "cpu/steps/growing_extents.h"
#include "cpu/steps/integer_product.h"
#include "cpu/steps/product_operands.h"
#include "cpu/steps/step_form.h"
#include "cpu/tile/product_layout.h"
#include "cpu/tile/specialize.h"
#include "cpu/tile/tile_builder.h"

namespace redfuser::cpu {

class ProductPlan final : public TilePlan {
 public:
  explicit ProductPlan(const StepForm& form)
      : step_(std::get<fuse::ProductStep>(form.kind)), result_(memory_of(form, step_.value)) {}

  // Empty where the plan was made; else why the product kernels do not take the operands.
  std::string build(const StepForm& form);

  // Rows and columns of a block, of all batches in turn. Before the first run.
  void set_blocks(int64_t rows, int64_t columns);
  // Takes constant operands from `store`, packed. Before the first run.
  void pack_constants(const ir::Graph& graph, PanelStore& store);
  // With these blocks.
  StepTime time(int threads) const;
  void run(RunContext& context) const override;
  bool is_exact() const override { return !growing_ || growing_->exact; }

  int64_t m() const { return m_; }
  int64_t n() const { return n_; }
  bool empty() const { return batches_ * m_ * n_ == 0; }

 private:
  using Region = BlockEpilogue::Block;
  bool separate_floats(const ir::Graph& graph, Specializer& specializer, const OperandAxes& axes,
                       const TileBuilder::DimsOf& dims);
  void plan_result(const ir::Graph& graph, Specializer& specializer, const OperandAxes& axes,
                   const TileBuilder::DimsOf& dims);
  // The placed copy of an expression.
  ir::Expr copied(Specializer& specializer, ir::Expr expr);
  // Of a run.
  struct Extents {
    int64_t length, batches, m, n, k;
  };
  Extents extents_of(const RunContext& context) const;
  // The part of an offset that its length decides.
  int64_t of_length(const SeparatedOffset& offset, const Extents& extents) const;
  void multiply(const RunContext& context, const Extents& extents, TileContext& machine,
                const Region& region, int64_t stride) const;
  // Product `i` into c; padded columns may be written too.
  void multiply_into(const RunContext& context, const Extents& extents, TileContext& machine,
                     const Region& region, size_t i, char* c, int64_t c_stride, bool padded) const;
  // Whether product `i` multiplies panels that are packed once: of a matrix of the product's type
  // that all batches share, for more rows than take it in place.
  bool packs(size_t i) const;
  double bytes_of_a() const;
  double bytes_of_b() const;
  double products_time(double rows, double columns) const;

  const fuse::ProductStep step_;
  const Dims result_;                       // the sizes of its memory
  DType dtype_ = DType::Float32;            // of the products
  std::optional<IntegerProduct> integers_;  // in place of a_ and b_
  int64_t batches_ = 1, m_ = 1, n_ = 1, k_ = 1;
  int64_t block_rows_ = 1, block_columns_ = 1;
  // Parts: batch, m or n, k; of growing sizes, the length.
  SeparatedOffset a_;
  std::vector<SeparatedOffset> b_;
  DType a_dtype_ = DType::Float32;
  std::vector<DType> b_dtypes_;
  std::vector<bool> b_constants_;
  std::vector<std::shared_ptr<const Tensor>> panels_;  // of constants, or null
  // The result is written in place when there is nothing to do after it.
  std::optional<SeparatedOffset> in_place_;  // parts: batch, m, n; of growing sizes, the length
  BlockEpilogue epilogue_;
  struct Growing {
    GrowingExtents extents;
    GrowingExtents::Count batches = {}, m = {}, n = {}, k = {};
    bool exact = true;
  };
  std::optional<Growing> growing_;
};

}  // namespace redfuser::cpu
