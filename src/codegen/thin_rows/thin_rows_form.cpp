#include "codegen/thin_rows/thin_rows_form.h"

#include <algorithm>

namespace redfuser::codegen {
namespace {

using Refusal = std::optional<std::string>;

class FormBuilder {
 public:
  FormBuilder(StepBuilder& builder, const fuse::Plan& plan)
      : builder_(builder), pool_(builder.pool()), plan_(plan) {}

  std::variant<ThinRowsForm, std::string> build(const fuse::CascadeStep& rows,
                                                const fuse::ProductStep& product) {
    if (auto refusal = take_product(product)) return std::move(*refusal);
    form_.rows = flat_streaming(builder_, rows);
    if (!folds(form_.rows)) return "elements of the rows are ranked or need a product";
    if (auto refusal = take_lines()) return std::move(*refusal);
    if (reads_rows()) return "the product's other operands are results of the rows";
    return std::move(form_);
  }

 private:
  Refusal take_product(const fuse::ProductStep& product) {
    const size_t calls = builder_.result.calls.size();
    auto parts = product_parts(builder_, product);
    if (!parts || builder_.result.calls.size() > calls) return "an operand is no matrix of floats";
    const auto thin = thin_form(builder_.graph, product, parts->calls);
    if (!thin) return "the product has more than a few rows, or none of 16 or 32 bits";
    form_.product = std::move(*parts);
    form_.thin = *thin;
    return std::nullopt;
  }

  // Adds the lines to the outputs of the rows.
  Refusal take_lines() {
    const ThinMatrix& thin = form_.thin.thin;
    FlatStreaming& rows = form_.rows;
    const auto output = std::find_if(
        rows.outputs.begin(), rows.outputs.end(), [&](const FlatStreaming::Output& each) {
          return thin.buffer.value >= 0 &&
                 plan_.root(static_cast<ir::ValueId>(each.value)) == plan_.root(thin.buffer.value);
        });
    if (output == rows.outputs.end()) return "the product's few lines are no result of the rows";
    const std::vector<ir::Expr> extents = extents_of(pool_, rows.cascade.rows);
    ir::Expr count = product_of(pool_, extents), length = rows.length();
    ir::Expr row = row_major(pool_, rows.cascade.rows, extents);
    ir::Expr dense = pool_.add(pool_.mul(row, length), rows.cascade.stream);
    const bool whole = output->maps_back && output->extra.empty() && output->offset == dense;
    const bool same = form_.thin.batch->is_constant(1) && thin.offset->is_constant(0) &&
                      thin.depth->is_constant(1) && form_.thin.depth == length &&
                      form_.thin.lines == count && (thin.line == length || count->is_constant(1));
    if (!whole || !same) return "the product's few lines are not the rows one by one";
    // Lines start half of all banks apart.
    constexpr int64_t kBankBytes = 128;
    const auto width = static_cast<int64_t>(size_of(form_.thin.dtype));
    const int64_t banks = kBankBytes / width;
    form_.pitch = (length->integer + banks - 1) / banks * banks + banks / 2;
    form_.lines = builder_.add_scratch(form_.thin.dtype, pool_.integer(0));
    FlatStreaming::Output lines = *output;
    lines.value = form_.lines;
    lines.offset = pool_.add(pool_.mul(row, pool_.integer(form_.pitch)), rows.cascade.stream);
    rows.outputs.insert(rows.outputs.begin(), std::move(lines));
    return std::nullopt;
  }

  // Whether the epilogue or a wide matrix has elements that the rows write.
  bool reads_rows() const {
    const auto written = [&](int64_t value) {
      return std::any_of(form_.rows.outputs.begin() + 1, form_.rows.outputs.end(),
                         [&](const FlatStreaming::Output& output) {
                           return value >= 0 && value < kScratchValues &&
                                  plan_.root(static_cast<ir::ValueId>(output.value)) ==
                                      plan_.root(static_cast<ir::ValueId>(value));
                         });
    };
    bool reads = std::any_of(form_.thin.wide.begin(), form_.thin.wide.end(),
                             [&](const ThinMatrix& wide) { return written(wide.buffer.value); });
    visit(form_.product.epilogue.body, [&](ir::Expr e) {
      const bool element = e->op == ir::ExprOp::Read;
      reads |= e->op == ir::ExprOp::Reduce;
      reads |= element && (written(e->integer) || e->integer == form_.product.epilogue.value);
    });
    return reads;
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::Plan& plan_;
  ThinRowsForm form_;
};

}  // namespace

std::variant<ThinRowsForm, std::string> thin_rows_form(StepBuilder& builder, const fuse::Plan& plan,
                                                       const fuse::CascadeStep& rows,
                                                       const fuse::ProductStep& product) {
  return FormBuilder(builder, plan).build(rows, product);
}

}  // namespace redfuser::codegen
