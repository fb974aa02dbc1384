// Results and outputs of a tile of rows, and which forms the family takes.
#include "base/error.h"
#include "codegen/attention_hopper_text.h"

namespace redfuser {

std::string HopperText::outputs() {
  emitter_.open();
  std::string lanes;
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (is_value(k) || !score_.per_lane[k]) continue;
    lanes += fmt::format("a{0}[h] = quad_reduce<{1}>(a{0}[h]);\n", k,
                         combiner_of(rows_.accumulators[k].reduction));
  }
  if (!lanes.empty()) emitter_.line(unrolled("h", 2, lanes));
  open_row();
  emitter_.line(fmt::format("const bool exists = own_row + h * 8 < {};", row_count_));
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (is_value(k)) continue;
    bind_all(LeafKind::State, static_cast<int64_t>(k), fmt::format("a{}[h]", k), DType::Float32);
  }
  bind_all(LeafKind::Count, 0, keys_, DType::Int64);
  emitter_.open();
  emitter_.line("const int x = h * 2 + e, column = n * 8 + pair + e;");
  bind_all(LeafKind::State, static_cast<int64_t>(score_.value), "o[n][x]", DType::Float32);
  emitter_.bind(form_.column, "column");
  finish();
  for (const auto& output : rows_.outputs) {
    const bool columns = output.offset->depends_on(form_.column);
    const std::string value = emitter_.emit_as(output.body, kernel_.dtype_of(output.value));
    emitter_.line(fmt::format("if (exists && column < {}) store({}, {}, {});",
                              columns ? form_.column->extent()->integer : 1,
                              kernel_.buffer(output.value, true), emitter_.emit(output.offset),
                              value));
  }
  const std::string element = emitter_.close();
  emitter_.line(unrolled("n", columns_ / 8, unrolled("e", 2, element) + "\n"));
  emitter_.line(close_row());
  return emitter_.close();
}

void HopperText::finish() {
  for (size_t i = 0; i < rows_.finish.size(); ++i) {
    const DType dtype = rows_.finish[i]->dtype;
    std::string value = emitter_.emit(rows_.finish[i]);
    if (!rows_.length()->is_constant()) {
      value = fmt::format("({} == 0 ? {} : {})", keys_,
                          identity_of(rows_.stages[i].reduction, dtype), value);
    }
    bind_all(LeafKind::Result, static_cast<int64_t>(i), value, dtype);
  }
}

std::optional<HopperOperands> hopper_operands(StepBuilder& builder, const AttentionForm& form) {
  constexpr int kArchitecture = 90;
  const Target& target = builder.target;
  if (target.architecture != kArchitecture || target.portable || !form.row) return std::nullopt;
  if (form.query->dtype != DType::Float16 && form.query->dtype != DType::BFloat16) {
    return std::nullopt;
  }
  std::vector<Phase> phases = phases_of(form.rows);
  if (form.value_accumulator < phases.back().begin) return std::nullopt;
  auto query = boxed_read(builder, form.query, form.depth, form.row);
  auto key = boxed_read(builder, form.key, form.depth, form.rows.stream);
  auto value = boxed_read(builder, form.value, form.column, form.rows.stream);
  if (!query || !key || !value) return std::nullopt;
  return HopperOperands{*query, *key, *value};
}

HopperConfig hopper_config(const AttentionForm& form) {
  const int64_t size = std::max(form.depth->extent()->integer, form.column->extent()->integer);
  if (size <= 64) return {3, 128, 2};
  if (size <= 128) return {2, 128, 2};
  return {2, 80, 2};
}

}  // namespace redfuser
