#include "codegen/row_product/row_product_form.h"

#include <algorithm>
#include <set>

#include "codegen/ranking/ranking_form.h"
#include "ir/contraction.h"

namespace redfuser::codegen {
namespace {

constexpr int kInstructionColumns = 16;

std::set<ir::Expr> reductions_of(const cascade::Streaming& streaming) {
  std::set<ir::Expr> found;
  const auto collect = [&](ir::Expr root) {
    visit(root, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Reduce) found.insert(e);
    });
  };
  for (const cascade::Accumulator& a : streaming.accumulators) collect(a.lift);
  for (const cascade::CascadeOutput& output : streaming.cascade.outputs) collect(output.body);
  return found;
}

bool depends_on_any(ir::Expr e, const std::vector<ir::Expr>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](ir::Expr axis) { return e->depends_on(axis); });
}

// Replaces the product in everything that is computed per element or per row.
void substitute(ir::ExprPool& pool, FlatStreaming& form, ir::Expr product, ir::Expr element) {
  const auto replace = [&](ir::Expr& e) {
    if (e != nullptr) e = pool.substitute(e, {{product, element}});
  };
  for (cascade::Accumulator& a : form.accumulators) {
    replace(a.lift);
    replace(a.transport);
  }
  for (cascade::Reference& reference : form.references) replace(reference.value);
  for (ir::Expr& finish : form.finish) replace(finish);
  for (FlatStreaming::Output& output : form.outputs) replace(output.body);
}

class FormBuilder {
 public:
  FormBuilder(StepBuilder& builder, const fuse::CascadeStep& step, const FlatStreaming& rows)
      : builder_(builder), pool_(builder.pool()), step_(step), form_{rows} {}

  std::variant<RowProductForm, std::string> build() {
    if (builder_.target.architecture != 90 || builder_.target.portable) {
      return "its tiles are those of sm_90";
    }
    const std::set<ir::Expr> reductions = reductions_of(step_.streaming);
    if (reductions.size() != 1) return "an element of the row is not one product";
    ir::Expr columns = form_.rows.length();
    if (!columns->is_constant() || columns->integer > kMostProductColumns) {
      return "the product has more columns than a tile";
    }
    form_.columns = columns->integer;
    if (auto refusal = take_operands(*reductions.begin())) return std::move(*refusal);
    take_rows(*reductions.begin());
    if (!folds(form_.rows)) {
      if (auto refusal = ranking_refusal(builder_, form_.rows)) return std::move(*refusal);
    }
    return std::move(form_);
  }

 private:
  std::optional<std::string> take_operands(ir::Expr reduce) {
    const auto contraction = as_contraction(pool_, reduce);
    if (!contraction) return "an element of the row is a reduction, but no product";
    scale_ = contraction->scale ? builder_.flat.flat(contraction->scale) : nullptr;
    ir::Expr left = builder_.flat.flat(contraction->a), right = builder_.flat.flat(contraction->b);
    ir::Expr stream = form_.rows.cascade.stream;
    const std::vector<ir::Expr>& rows = form_.rows.cascade.rows;
    if (left->depends_on(stream)) std::swap(left, right);
    if (left->depends_on(stream) || depends_on_any(right, rows)) {
      return "the product has a matrix of columns for each row";
    }
    const bool halves = size_of(left->dtype) == 2 && is_float(left->dtype);
    if (!halves || right->dtype != left->dtype) return "the operands are not floats of 16 bits";
    form_.dtype = left->dtype;
    form_.count = product_of(pool_, extents_of(pool_, rows));
    form_.depth = contraction->axis->extent();
    form_.left = builder_.buffer(left->integer);
    form_.right = builder_.buffer(right->integer);
    auto left_layout = matrix_layout(pool_, left->args[0], {}, rows, {contraction->axis});
    auto right_layout = matrix_layout(pool_, right->args[0], {}, {contraction->axis}, {stream});
    if (!left_layout || !right_layout ||
        !library_takes(pool_, *left_layout, form_.count, form_.depth) ||
        !library_takes(pool_, *right_layout, form_.depth, pool_.integer(form_.columns)) ||
        !left_layout->column->is_constant(1)) {
      return "an operand is not a matrix that TMA reads";
    }
    form_.left_layout = *left_layout;
    form_.right_layout = *right_layout;
    return std::nullopt;
  }

  void take_rows(ir::Expr reduce) {
    const auto size = static_cast<int64_t>(size_of(reduce->dtype));
    constexpr int64_t kVectorBytes = 16;
    form_.pitch = form_.padded() + kVectorBytes / size;
    form_.product = builder_.add_scratch(reduce->dtype, pool_.integer(0));
    const std::vector<ir::Expr>& rows = form_.rows.cascade.rows;
    ir::Expr row = row_major(pool_, rows, extents_of(pool_, rows));
    ir::Expr offset =
        pool_.add(pool_.mul(row, pool_.integer(form_.pitch)), form_.rows.cascade.stream);
    ir::Expr element = pool_.read(form_.product, reduce->dtype, {offset});
    if (scale_ != nullptr) element = pool_.mul(element, scale_);
    substitute(pool_, form_.rows, builder_.flat.flat(reduce), element);
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const fuse::CascadeStep& step_;
  RowProductForm form_;
  ir::Expr scale_ = nullptr;
};

}  // namespace

int RowProductForm::padded() const {
  const auto unit = int64_t{kInstructionColumns};
  return static_cast<int>((columns + unit - 1) / unit * unit);
}

int RowProductForm::chunks(int lanes, int width) const {
  return static_cast<int>((columns + lanes * width - 1) / (lanes * width));
}

std::variant<RowProductForm, std::string> row_product_form(StepBuilder& builder,
                                                           const fuse::CascadeStep& step,
                                                           const FlatStreaming& rows) {
  return FormBuilder(builder, step, rows).build();
}

}  // namespace redfuser::codegen
