#include "codegen/attention/mma/mma_fold.h"

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/text/loop.h"
#include "codegen/text/operation_text.h"
#include "ir/polynomial.h"

#include <fmt/format.h>

namespace redfuser::codegen {
MmaFold::MmaFold(StepBuilder& builder, const AttentionSpec& form, int keys, int halves)
    : pool_(builder.pool()),
      form_(form),
      rows_(form.rows),
      kernel_(builder.kernel()),
      emitter_(kernel_),
      leaves_(emitter_),
      phases_(phases_of(form.rows)),
      products_(builder.target, form),
      depth_(products_.key.columns),
      columns_(products_.value.columns),
      tile_keys_(keys),
      halves_(halves) {
  row_extent_ = form.row ? form.row->extent() : pool_.integer(1);
  keys_ = kernel_.size(rows_.length());
  row_count_ = kernel_.size(row_extent_);
  emitter_.set_fast_math(products_.rounded());
  leaves_.add(form.weight);
  leaves_.add(rows_);
  find_shared();
}

std::string MmaFold::for_halves(const std::string& body) const {
  return unrolled("h", halves_, body);
}

void MmaFold::find_shared() {
  FlatStreaming scalar = rows_;
  scalar.accumulators[form_.value_accumulator].lift = form_.weight;
  for (ir::Expr e : shared_values(scalar, phases_)) {
    bool scored = false;
    visit(e, [&](ir::Expr x) { scored |= x == form_.contraction; });
    if (scored) shared_.push_back(e);
  }
}

void MmaFold::declare_query(int whole) {
  declare_operand("q", products_.query, form_.query, form_.row, "(first_row + line)", form_.depth,
                  whole);
}
void MmaFold::declare_key_and_value() {
  const MmaOperand &key = products_.key, &value = products_.value;
  declare_operand("k", key, form_.key, rows_.cascade.stream, "line", form_.depth, 16 / key.element);
  declare_operand("v", value, form_.value, rows_.cascade.stream, "line", form_.column,
                  16 / value.element);
}

// Declares the lambda from (line, element) to the operand's offset, and whether vector copies of
// `whole` elements are aligned.
void MmaFold::declare_operand(const std::string& name, const MmaOperand& operand, ir::Expr read,
                              ir::Expr line, const std::string& line_name, ir::Expr element,
                              int whole) {
  emitter_.open();
  if (line) emitter_.bind(line, line_name);
  emitter_.bind(element, "e");
  const std::string value = emitter_.emit(read->args[0]);
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("const {}* const {}_data = {};", operand.type, name,
                            kernel_.buffer(read->integer)));
  emitter_.line(
      fmt::format("const auto {}_at = [&](long long line, long long e) {{\n(void)line;\n{}"
                  "return {};\n}};",
                  name, text, value));
  auto affine = affine_in(pool_, read->args[0], element);
  std::string vector = "false";
  if (affine && affine->stride->is_constant(1) && !affine->base->depends_on(element)) {
    std::vector<ir::Expr> units = offset_units(pool_, affine->base);
    units.push_back(element->extent());
    vector = all_aligned(kernel_.multiples(units, whole), {kernel_.buffer(read->integer)});
  }
  emitter_.line(fmt::format("const bool {}_vector = {};", name, vector));
}

void MmaFold::declare_state() {
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    if (is_value(k)) continue;
    const std::string identity = identity_of(a.reduction, a.dtype);
    emitter_.line(fmt::format("float a{0}[2] = {{{1}, {1}}};", k, identity));
  }
  emitter_.line(fmt::format("float o[{}][4] = {{}};", columns_ / 8));
  // References of the empty state.
  emitter_.open();
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (is_value(k)) continue;
    const cascade::Accumulator& a = rows_.accumulators[k];
    leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), identity_of(a.reduction, a.dtype),
                 a.dtype);
  }
  leaves_.bind(ir::LeafKind::Count, 0, "0ll", DType::Int64);
  std::string declarations;
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    const std::string value = emitter_.emit_as(rows_.references[r].value, DType::Float32);
    declarations += fmt::format("r{0}[0] = r{0}[1] = {1};\n", r, value);
  }
  emitter_.line(declarations);
  const std::string text = emitter_.close();
  for (size_t r = 0; r < rows_.references.size(); ++r)
    emitter_.line(fmt::format("float r{}[2];", r));
  emitter_.line(fmt::format("{{\n{}}}", text));
}

void MmaFold::fold(const std::string& score_product, const std::string& value_product) {
  emitter_.line(
      fmt::format("float s[{0}][4], p[{0}][4]{1};", tile_keys_ / 8, halves_ < 2 ? " = {}" : ""));
  for (size_t i = 0; i < shared_.size(); ++i) {
    emitter_.line(fmt::format("float kept{}[{}][4];", i, tile_keys_ / 8));
  }
  emitter_.line(score_product);
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k)) emitter_.line(fmt::format("float b{}[2];", k));
  }
  for (size_t r = 0; r < rows_.references.size(); ++r)
    emitter_.line(fmt::format("float w{}[2];", r));
  make_references(0);
  for (size_t i = 0; i < phases_.size(); ++i) run_phase(phases_[i], i == 0);
  emitter_.line(value_product);
  std::string moves;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k)) moves += fmt::format("a{0}[h] = b{0}[h];\n", k);
  }
  for (size_t r = 0; r < rows_.references.size(); ++r)
    moves += fmt::format("r{0}[h] = w{0}[h];\n", r);
  emitter_.line(for_halves(moves));
  emitter_.line("folded += valid;");
}

void MmaFold::open_row() {
  emitter_.open();
  if (!form_.row) return;
  emitter_.line(fmt::format("const long long row = min_of(own_row + h * 8, {} - 1);", row_count_));
  emitter_.bind(form_.row, "row");
}
void MmaFold::close_row() {
  const std::string text = emitter_.close();
  emitter_.line(for_halves(text));
}

void MmaFold::bind_state(const std::string& prefix, const std::string& suffix, size_t count) {
  for (size_t k = 0; k < count; ++k) {
    if (is_value(k)) continue;
    leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k),
                 fmt::format("{}{}{}", prefix, k, suffix), DType::Float32);
  }
}

void MmaFold::bind_old_state() {
  bind_state("a", "[h]", rows_.accumulators.size());
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    leaves_.bind(ir::LeafKind::OldResult, static_cast<int64_t>(r), fmt::format("r{}[h]", r),
                 DType::Float32);
  }
  bind_new_references();
  leaves_.bind(ir::LeafKind::Count, 0, "folded", DType::Int64);
}
void MmaFold::bind_new_references() {
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    leaves_.bind(ir::LeafKind::NewResult, static_cast<int64_t>(r), fmt::format("w{}[h]", r),
                 DType::Float32);
  }
}

void MmaFold::run_phase(const Phase& phase, bool first) {
  open_row();
  bind_new_references();
  for (size_t k = phase.begin; k < phase.end; ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    if (is_value(k)) continue;
    emitter_.line(fmt::format("float t{}_tile = {};", k, identity_of(a.reduction, a.dtype)));
  }
  emitter_.open();
  emitter_.line("const int x = h * 2 + e, offset = n * 8 + pair + e;");
  emitter_.line(fmt::format("const long long at = min_of(first + offset, {} - 1);", keys_));
  emitter_.bind(rows_.cascade.stream, "at");
  bind_score("s[n][x]");
  for (size_t i = 0; i < shared_.size(); ++i) {
    const std::string kept = fmt::format("kept{}[n][x]", i);
    if (first) {
      emitter_.line(fmt::format("{} = {};", kept, emitter_.emit_as(shared_[i], DType::Float32)));
    } else {
      emitter_.bind(shared_[i], kept);
    }
  }
  for (size_t k = phase.begin; k < phase.end; ++k) {
    const cascade::Accumulator& a = rows_.accumulators[k];
    if (is_value(k)) {
      const std::string weight = emitter_.emit_as(form_.weight, DType::Float32);
      emitter_.line(fmt::format("p[n][x] = offset < valid ? {} : 0.0f;", weight));
    } else {
      emitter_.line(fmt::format("if (offset < valid) t{0}_tile = {1}::apply(t{0}_tile, {2});", k,
                                combiner_of(a.reduction), emitter_.emit_as(a.lift, a.dtype)));
    }
  }
  const std::string element = emitter_.close();
  emitter_.line(unrolled("n", tile_keys_ / 8, unrolled("e", 2, element) + "\n"));
  for (size_t k = phase.begin; k < phase.end; ++k) update(k);
  close_row();
  make_references(phase.end);
}

void MmaFold::bind_score(const std::string& score) {
  if (!form_.scale) {
    emitter_.bind(form_.contraction, score);
    return;
  }
  const std::string scale = emitter_.emit_as(form_.scale, DType::Float32);
  const std::string name = emitter_.fresh("scaled");
  emitter_.line(fmt::format("const float {} = {} * {};", name, score, scale));
  emitter_.bind(form_.contraction, name);
}

// New states from the old ones and the reductions of the tile.
void MmaFold::update(size_t k) {
  const cascade::Accumulator& a = rows_.accumulators[k];
  if (is_value(k)) return update_values(a);
  emitter_.open();
  bind_old_state();
  const std::string old =
      a.transport ? emitter_.emit_as(a.transport, a.dtype) : fmt::format("a{}[h]", k);
  emitter_.line(fmt::format("b{0}[h] = {1}::apply({2}, quad_reduce<{1}>(t{0}_tile));", k,
                            combiner_of(a.reduction), old));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{{\n{}}}", text));
}

void MmaFold::update_values(const cascade::Accumulator& a) {
  if (!a.transport) return;
  emitter_.open();
  bind_old_state();
  emitter_.open();
  emitter_.line("const int x = h * 2 + e;");
  leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), "o[n][x]",
               DType::Float32);
  emitter_.line(fmt::format("o[n][x] = {};", emitter_.emit_as(a.transport, DType::Float32)));
  const std::string element = emitter_.close();
  emitter_.line(unrolled("n", columns_ / 8, unrolled("e", 2, element) + "\n"));
  const std::string text = emitter_.close();
  // ρ(d, d) = 1: no rescaling unless a reference of the warp's rows changed.
  std::string same;
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    same += fmt::format("{0}r{1}[h] == w{1}[h]", r > 0 ? " && " : "", r);
  }
  // Not with products by fused multiply-adds: the branch makes the kernel spill.
  emitter_.line(same.empty() || products_.scalar()
                    ? fmt::format("{{\n{}}}", text)
                    : fmt::format("if (!__all_sync(0xffffffffu, {})) {{\n{}}}", same, text));
}

void MmaFold::make_references(size_t done) {
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    const cascade::Reference& reference = rows_.references[r];
    if (static_cast<size_t>(reference.ready_after) > done || !ready_.insert(r).second) continue;
    emitter_.open();
    bind_state("b", "[h]", done);
    leaves_.bind(ir::LeafKind::Count, 0, "(folded + valid)", DType::Int64);
    emitter_.line(
        fmt::format("w{}[h] = {};", r, emitter_.emit_as(reference.value, DType::Float32)));
    const std::string text = emitter_.close();
    emitter_.line(for_halves(text));
  }
}

void MmaFold::bind_result(size_t i) {
  const DType dtype = rows_.finish[i]->dtype;
  std::string value = emitter_.emit(rows_.finish[i]);
  if (!rows_.length()->is_constant()) {
    value = fmt::format("({} == 0 ? {} : {})", keys_,
                        identity_of(rows_.cascade.stages[i].reduction, dtype), value);
  }
  leaves_.bind(ir::LeafKind::Result, static_cast<int64_t>(i), value, dtype);
}

void MmaFold::write_outputs(const std::string& exists) {
  leaves_.bind(ir::LeafKind::Count, 0, keys_, DType::Int64);
  leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), "value",
               DType::Float32);
  emitter_.bind(form_.column, "column");
  for (size_t i = 0; i < rows_.finish.size(); ++i) bind_result(i);
  for (const auto& output : rows_.outputs) {
    const bool columns = output.offset->depends_on(form_.column);
    const std::string value = emitter_.emit_as(output.body, kernel_.dtype_of(output.value));
    emitter_.line(fmt::format("if ({} && column < {}) store({}, {}, {});", exists,
                              columns ? form_.column->extent()->integer : 1,
                              kernel_.buffer(output.value, true), emitter_.emit(output.offset),
                              value));
  }
}

}  // namespace redfuser::codegen
