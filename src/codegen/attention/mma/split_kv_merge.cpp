#include "codegen/attention/mma/split_kv_merge.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

int state_head(const AttentionSpec& form) {
  const size_t scalars = form.rows.accumulators.size() + form.rows.references.size() + 1;
  return static_cast<int>((scalars + 3) / 4 * 4);
}
int state_block(const AttentionSpec& form, int rows) {
  const int columns = padded_size(form.column->extent()->integer);
  return rows * (state_head(form) + columns);
}

SplitKvMerge::SplitKvMerge(MmaFold& tile, const AttentionSpec& form, int rows, int threads)
    : tile_(tile), form_(form), emitter_(tile.emitter()), rows_(rows), threads_(threads) {}

void SplitKvMerge::store_registers(const std::string& states) {
  std::string head;
  for (size_t k = 0; k < accumulators(); ++k) {
    if (!tile_.is_value(k)) head += fmt::format("state[{0}] = a{0}[h];\n", k);
  }
  for (size_t r = 0; r < references(); ++r) {
    head += fmt::format("state[{}] = r{}[h];\n", accumulators() + r, r);
  }
  emitter_.line(fmt::format(
      "#pragma unroll\nfor (int h = 0; h < {0}; ++h) {{\nif (quad >= {8}) continue;\nif (pair == "
      "0) {{\nfloat state[{2}] = {{}};\n"
      "{3}state[{4}] = __int_as_float(static_cast<int>(folded));\n"
      "store_floats({1} + (quad + h * 8) * {2}, state);\n}}\n"
      "float* const values = {1} + {5} + (quad + h * 8) * {6} + pair;\n"
      "#pragma unroll\nfor (int n = 0; n < {7}; ++n) {{\n"
      "*reinterpret_cast<float2*>(values + n * 8) = make_float2(o[n][h * 2], o[n][h * 2 + 1]);\n"
      "}}\n}}",
      (rows_ + 7) / 8, states, this->head(), head, count_place(), rows_ * this->head(),
      tile_.columns(), tile_.columns() / 8, std::min(rows_, 8)));
}

std::string SplitKvMerge::for_heads(const std::string& body) const { return loop_ + body + "}"; }

std::string SplitKvMerge::for_groups(const std::string& body) const {
  return fmt::format(
      "#pragma unroll\nfor (int g = 0; g < {}; ++g) {{\nconst int from = (g * {} + slot) * 4;\nif "
      "(from >= {}) break;\n{}}}",
      groups(), threads_of_row(), tile_.columns(), body);
}

// The leaves of a state that is rescaled to the merged references.
void SplitKvMerge::bind_part() {
  tile_.bind_state("part[", "]", accumulators());
  for (size_t r = 0; r < references(); ++r) {
    const auto number = static_cast<int64_t>(r);
    tile_.leaves().bind(ir::LeafKind::OldResult, number,
                        fmt::format("part[{}]", accumulators() + r), DType::Float32);
    tile_.leaves().bind(ir::LeafKind::NewResult, number, fmt::format("merged_r{}", r),
                        DType::Float32);
  }
  tile_.leaves().bind(
      ir::LeafKind::Count, 0,
      fmt::format("static_cast<long long>(__float_as_int(part[{}]))", count_place()), DType::Int64);
}

void SplitKvMerge::declare_state() {
  emitter_.line(fmt::format("const int line = threadIdx.x / {0}, slot = threadIdx.x % {0};",
                            threads_of_row()));
  emitter_.line(fmt::format("float merged_o[{}][4];\nint merged_count;", groups()));
  for (size_t k = 0; k < accumulators(); ++k) {
    if (!tile_.is_value(k)) emitter_.line(fmt::format("float merged_a{};", k));
  }
  for (size_t r = 0; r < references(); ++r) emitter_.line(fmt::format("float merged_r{};", r));
}

void SplitKvMerge::declare() {
  declare_state();
  loop_ = fmt::format(
      "#pragma unroll 4\nfor (int i = 0; i < count; ++i) {{\nconst float* const part = heads + i * "
      "head_stride + line * {};\n",
      head());
  emitter_.open();
  merge_heads();
  merge_values();
  const std::string text = emitter_.close();
  emitter_.line(fmt::format(
      "const auto merge = [&](const float* heads, int head_stride, const float* states, "
      "int count) {{\n{}}};",
      text));
}

void SplitKvMerge::merge_heads() {
  emitter_.line("merged_count = 0;");
  emitter_.line(
      for_heads(fmt::format("merged_count += __float_as_int(part[{}]);\n", count_place())));
  make_references(0);
  for (size_t k = 0; k < accumulators(); ++k) {
    if (!tile_.is_value(k)) merge_accumulator(k);
    make_references(k + 1);
  }
}

void SplitKvMerge::merge_accumulator(size_t k) {
  const cascade::Accumulator& a = form_.rows.accumulators[k];
  emitter_.line(fmt::format("merged_a{} = {};", k, identity_of(a.reduction, a.dtype)));
  emitter_.open();
  bind_part();
  const std::string moved =
      a.transport ? emitter_.emit_as(a.transport, a.dtype) : fmt::format("part[{}]", k);
  emitter_.line(fmt::format("merged_a{0} = {1}::apply(merged_a{0}, {2});", k,
                            combiner_of(a.reduction), moved));
  const std::string text = emitter_.close();
  emitter_.line(for_heads(text));
}

void SplitKvMerge::merge_values() {
  const cascade::Accumulator& a = form_.rows.accumulators[form_.value_accumulator];
  emitter_.line(
      for_groups("merged_o[g][0] = merged_o[g][1] = merged_o[g][2] = merged_o[g][3] = "
                 "0;\n"));
  emitter_.open();
  bind_part();
  emitter_.open();
  emitter_.line(
      fmt::format("const float4 four = *reinterpret_cast<const float4*>(columns + from);\n"
                  "const float values[4] = {{four.x, four.y, four.z, four.w}};"));
  emitter_.open();
  tile_.leaves().bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator),
                      "values[e]", DType::Float32);
  const std::string moved =
      a.transport ? emitter_.emit_as(a.transport, DType::Float32) : std::string("values[e]");
  emitter_.line(fmt::format("merged_o[g][e] += {};", moved));
  const std::string element = emitter_.close();
  emitter_.line(fmt::format("#pragma unroll\nfor (int e = 0; e < 4; ++e) {{\n{}}}", element));
  const std::string group = emitter_.close();
  emitter_.line(for_groups(group));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format(
      "#pragma unroll 8\nfor (int i = 0; i < count; ++i) {{\nconst float* const part = heads + i * "
      "head_stride + line * {0}, *const columns = states + static_cast<long long>(i) * {1} + {2} + "
      "line * {3};\n{4}}}",
      head(), state_block(form_, rows_), rows_ * head(), tile_.columns(), text));
}

void SplitKvMerge::make_references(size_t done) {
  for (size_t r = 0; r < references(); ++r) {
    const cascade::Reference& reference = form_.rows.references[r];
    if (static_cast<size_t>(reference.ready_after) != done) continue;
    emitter_.open();
    tile_.bind_state("merged_a", "", done);
    tile_.leaves().bind(ir::LeafKind::Count, 0, "static_cast<long long>(merged_count)",
                        DType::Int64);
    emitter_.line(
        fmt::format("merged_r{} = {};", r, emitter_.emit_as(reference.value, DType::Float32)));
    const std::string text = emitter_.close();
    emitter_.line(fmt::format("{{\n{}}}", text));
  }
}

void SplitKvMerge::store(const std::string& states) {
  std::string head;
  for (size_t k = 0; k < accumulators(); ++k) {
    if (!tile_.is_value(k)) head += fmt::format("state[{0}] = merged_a{0};\n", k);
  }
  for (size_t r = 0; r < references(); ++r) {
    head += fmt::format("state[{}] = merged_r{};\n", accumulators() + r, r);
  }
  emitter_.line(
      fmt::format("if (slot == 0) {{\nfloat state[{0}] = {{}};\n{1}state[{2}] = "
                  "__int_as_float(merged_count);\nstore_floats({3} + line * {0}, state);\n}}",
                  this->head(), head, count_place(), states));
  emitter_.line(for_groups(fmt::format("store_floats({}, merged_o[g]);\n", columns_of(states))));
}

void SplitKvMerge::open_outputs() {
  emitter_.open();
  if (form_.row) {
    emitter_.line(
        fmt::format("const long long row = min_of(first_row + line, {} - 1);", tile_.row_count()));
    emitter_.bind(form_.row, "row");
  }
  emitter_.line(fmt::format("const bool exists = first_row + line < {};", tile_.row_count()));
  tile_.bind_state("merged_a", "", accumulators());
}

void SplitKvMerge::write_outputs() {
  open_outputs();
  emitter_.open();
  emitter_.line("const long long column = from + e;\nconst float value = merged_o[g][e];");
  tile_.write_outputs("exists");
  const std::string element = emitter_.close();
  emitter_.line(
      for_groups(fmt::format("#pragma unroll\nfor (int e = 0; e < 4; ++e) {{\n{}}}\n", element)));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{{\n{}}}", text));
}

}  // namespace redfuser::codegen
