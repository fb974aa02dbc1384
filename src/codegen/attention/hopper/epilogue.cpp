// Results and outputs of a tile of rows.
#include "base/error.h"
#include "codegen/attention/hopper/text.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/text/loop.h"
#include "codegen/text/operation_text.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {

std::string HopperText::outputs() {
  emitter_.open();
  join_lanes();
  write_rows();
  return emitter_.close();
}

void HopperText::join_lanes() {
  std::string lanes;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (is_value(k) || !masked_.per_lane[k]) continue;
    lanes += fmt::format("a{0}[h] = quad_reduce<{1}>(a{0}[h]);\n", k,
                         combiner_of(rows_.accumulators[k].reduction));
  }
  if (!lanes.empty()) emitter_.line(unrolled("h", 2, lanes));
}

void HopperText::write_rows() {
  open_row();
  emitter_.line(fmt::format("const bool exists = own_row + h * 8 < {};", row_count_));
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (is_value(k)) continue;
    leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), fmt::format("a{}[h]", k),
                 DType::Float32);
  }
  leaves_.bind(ir::LeafKind::Count, 0, keys_, DType::Int64);
  for (const auto& output : rows_.outputs) write(output);
  emitter_.line(close_row());
}

// Divisions by a value that the row shares become products, for results rounded to 16 bits.
ir::Expr HopperText::by_reciprocals(ir::Expr e) const {
  const auto row_level = [&](ir::Expr x) {
    if (x->depends_on(form_.column)) return false;
    bool found = false;
    visit(x, [&](ir::Expr y) {
      found |= y->op == ir::ExprOp::Leaf && y->leaf_kind == ir::LeafKind::State &&
               y->integer == static_cast<int64_t>(form_.value_accumulator);
    });
    return !found;
  };
  return pool_.rewrite(e, [&](ir::Expr x) -> ir::Expr {
    if (x->op != ir::ExprOp::Div || !is_float(x->dtype) || !row_level(x->args[1])) return nullptr;
    if (row_level(x->args[0])) return nullptr;
    return pool_.mul(by_reciprocals(x->args[0]), pool_.make(ir::ExprOp::Reciprocal, {x->args[1]}));
  });
}

void HopperText::write(const FlatStreaming::Output& output) {
  const DType dtype = kernel_.dtype_of(output.value);
  const bool columns = output.offset->depends_on(form_.column);
  const int64_t extent = columns ? form_.column->extent()->integer : 1;
  const std::string buffer = kernel_.buffer(output.value, true);
  auto affine = affine_in(pool_, output.offset, form_.column);
  std::string pairs = "false";
  if (columns && size_of(dtype) == 2 && affine && affine->stride->is_constant(1)) {
    std::vector<ir::Expr> units = offset_units(pool_, affine->base);
    units.push_back(form_.column->extent());
    pairs = kernel_.multiples(units, 2);
  }
  const bool paired = pairs == "true";
  emitter_.open();
  emitter_.line("float out[2];");
  emitter_.open();
  emitter_.line(
      fmt::format("const int x = h * 2 + e, column = {}n * 8 + pair + e;", first_column_));
  leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), "o[n][x]",
               DType::Float32);
  emitter_.bind(form_.column, "column");
  finish(size_of(dtype) == 2);
  const std::string value = emitter_.emit_as(output.body, dtype);
  emitter_.line(paired ? fmt::format("out[e] = {};", value)
                       : fmt::format("if (exists && column < {}) store({}, {}, {});", extent,
                                     buffer, emitter_.emit(output.offset), value));
  const std::string element = emitter_.close();
  emitter_.line(unrolled("e", 2, element));
  if (paired) {
    emitter_.line(fmt::format("const int column = {}n * 8 + pair;", first_column_));
    emitter_.bind(form_.column, "column");
    emitter_.line(fmt::format("if (exists && column < {}) store_pair({}, {}, out);", extent, buffer,
                              emitter_.emit(output.offset)));
  }
  const std::string text = emitter_.close();
  emitter_.line(unrolled("n", columns_ / 8, text));
}

void HopperText::finish(bool rounded) {
  for (size_t i = 0; i < rows_.finish.size(); ++i) {
    const DType dtype = rows_.finish[i]->dtype;
    std::string value = emitter_.emit(rounded ? by_reciprocals(rows_.finish[i]) : rows_.finish[i]);
    if (!rows_.length()->is_constant()) {
      value = fmt::format("({} == 0 ? {} : {})", keys_,
                          identity_of(rows_.cascade.stages[i].reduction, dtype), value);
    }
    leaves_.bind(ir::LeafKind::Result, static_cast<int64_t>(i), value, dtype);
  }
}

}  // namespace redfuser::codegen
