#include "codegen/product/thin_form.h"

#include <algorithm>

namespace redfuser::codegen {
namespace {

ThinMatrix left(const ProductCall& call) {
  return {call.a, call.a_offset, call.a_batch, call.a_row, call.a_column};
}

ThinMatrix right(const ProductCall& call) {
  return {call.b, call.b_offset, call.b_batch, call.b_column, call.b_row};
}

bool few(ir::Expr size) { return size->is_constant() && size->integer <= kMostThinLines; }

// Blocks along a grid's second dimension.
constexpr int64_t kMostGrid = 65535;

// The product's columns are the thin lines.
bool thin_columns(const ProductCall& call) {
  if (!few(call.n)) return false;
  return !call.m->is_constant() || call.m->integer > call.n->integer;
}

// Those of every product, floats of `dtype` in equal codes; empty where one of them is stored
// otherwise.
std::vector<CodedOperand> coded_operands(const ir::Graph& graph, const fuse::ProductStep& step,
                                         DType dtype) {
  std::vector<CodedOperand> operands;
  for (ir::Expr b : step.b) {
    auto operand = coded_operand(graph, step, b);
    if (!operand || operand->codes->stored_codes == ir::kAbsent || b->dtype != dtype) return {};
    if (operand->first % kCodedLines != 0) return {};
    const ir::WeightCodes& own = *operand->codes;
    const ir::WeightCodes& others = operands.empty() ? own : *operands[0].codes;
    const bool alike = own.bits == others.bits && own.block == others.block &&
                       own.zero == others.zero && own.zeros.defined() == others.zeros.defined();
    if (!alike) return {};
    operands.push_back(std::move(*operand));
  }
  return operands;
}

}  // namespace

std::optional<ThinForm> thin_form(const ir::Graph& graph, const fuse::ProductStep& step,
                                  const std::vector<ProductCall>& calls) {
  const ProductCall& call = calls[0];
  const bool floats = size_of(call.dtype) == 2 || call.dtype == DType::Float32;
  if (!floats || !call.k->is_constant()) return std::nullopt;
  if (!call.batch->is_constant() || call.batch->integer > kMostGrid) return std::nullopt;
  ThinForm form;
  form.dtype = call.dtype;
  form.thin = left(call);
  form.columns = thin_columns(call);
  form.batch = call.batch;
  form.extent = call.n;
  form.lines = call.m;
  form.depth = call.k;
  if (form.columns) {
    if (calls.size() > 1) return std::nullopt;
    form.thin = right(call);
    form.wide = {left(call)};
    std::swap(form.extent, form.lines);
  } else {
    if (call.m->is_constant() && !few(call.m)) return std::nullopt;
    for (const ProductCall& each : calls) form.wide.push_back(right(each));
    form.coded = coded_operands(graph, step, form.dtype);
  }
  const bool along = form.along();
  const bool alike = std::all_of(form.wide.begin(), form.wide.end(), [&](const ThinMatrix& matrix) {
    return along ? matrix.depth->is_constant(1) : matrix.line->is_constant(1);
  });
  if (!alike && form.coded.empty()) return std::nullopt;
  const auto is_given = [&](const ThinMatrix& matrix) { return matrix.buffer.is_given(graph); };
  // A product of rows that are there as well has no launch to wait for.
  form.given = !is_given(form.thin) && std::all_of(form.wide.begin(), form.wide.end(), is_given);
  return form;
}

}  // namespace redfuser::codegen
