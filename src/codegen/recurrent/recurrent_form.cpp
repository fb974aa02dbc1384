#include "codegen/recurrent/recurrent_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/core/memory_order.h"
#include "codegen/product/library_product.h"

namespace redfuser::codegen {
namespace {

struct Operator {
  std::string_view name;
  ops::Cell cell;
};
constexpr Operator kOperators[] = {
    {"RNN", ops::Cell::Rnn}, {"GRU", ops::Cell::Gru}, {"LSTM", ops::Cell::Lstm}};

const Operator* operator_of(std::string_view domain, std::string_view name) {
  if (!domain.empty() && domain != "ai.onnx") return nullptr;
  const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                   [&](const Operator& each) { return each.name == name; });
  return found == std::end(kOperators) ? nullptr : found;
}

// The first problem of the inputs, of those that the shape rule leaves to the kernels; empty: none.
std::string problem_of(const ops::NodeView& view, const RecurrentForm& form) {
  ir::ExprPool& pool = view.pool();
  for (const int i : {1, 2, 3, 5, 6, 7}) {
    if (view.has_input(i) && view.dtype(i) != form.dtype) return "its operands have several types";
  }
  if (view.has_input(4) && view.dtype(4) != DType::Int32) return "the lengths are not int32";
  const int64_t directions = form.layer.directions;
  const auto has_size = [&](int input, ir::Expr size) {
    return !view.has_input(input) || product_of(pool, view.shape(input)) == size;
  };
  if (!has_size(3, pool.integer(2 * form.columns()))) return "the size of the bias is not known";
  if (!has_size(4, form.batch)) return "the number of lengths is not known to be the batch";
  if (!has_size(7, pool.integer(3 * directions * form.hidden))) {
    return "the size of the peepholes is not known";
  }
  return "";
}

}  // namespace

bool is_recurrent(std::string_view domain, std::string_view name) {
  return operator_of(domain, name) != nullptr;
}

std::variant<RecurrentForm, std::string> recurrent_form(const ops::NodeView& view) {
  RecurrentForm form;
  form.layer = recurrent_layer(view, operator_of(view.node().domain, view.node().op)->cell);
  form.dtype = view.dtype(0);
  if (form.dtype != DType::Float16 && form.dtype != DType::BFloat16 &&
      form.dtype != DType::Float32) {
    return fmt::format("states of {} have no kernel", name_of(form.dtype));
  }
  const ir::Expr hidden = view.shape(2)[2];
  if (!hidden->is_constant() || hidden->integer < 1) return "the number of units is not known";
  form.hidden = hidden->integer;
  form.steps = view.shape(0)[form.layer.batch_first ? 1 : 0];
  form.batch = view.shape(0)[form.layer.batch_first ? 0 : 1];
  form.input = view.shape(0)[2];
  std::string problem = problem_of(view, form);
  if (!problem.empty()) return problem;
  return form;
}

int64_t add_input_product(StepBuilder& builder, const ops::NodeView& view,
                          const RecurrentForm& form) {
  ir::ExprPool& pool = builder.pool();
  const auto& x = view.shape(0);
  fuse::ProductStep product;
  for (const ir::ValueId output : view.node().outputs) {
    if (output >= 0) product.value = output;
  }
  product.m = {pool.axis("s", x[0]), pool.axis("s", x[1])};
  product.n = {pool.axis("d", pool.integer(form.layer.directions)),
               pool.axis("r", pool.integer(form.gates() * form.hidden))};
  product.k = pool.axis("k", form.input);
  product.axes = {product.m[0], product.m[1], product.n[0], product.n[1]};
  const auto read = [&](int input, const std::vector<ir::Expr>& at) {
    return builder.flat.flat(pool.read(view.node().inputs[static_cast<size_t>(input)], form.dtype,
                                       {at[0], at[1], product.k}));
  };
  product.a = read(0, product.m);
  product.b = {read(1, product.n)};
  product.epilogue = pool.leaf(ir::LeafKind::Product, 0, DType::Float32);
  const std::vector<ir::Expr> extents = extents_of(pool, product.axes);
  const int64_t scratch = builder.add_scratch(DType::Float32, product_of(pool, extents));
  add_product_at(builder, product, scratch, row_major(pool, product.axes, extents),
                 "inputs of a recurrent layer\n");
  return scratch;
}

}  // namespace redfuser::codegen
