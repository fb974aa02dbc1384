// Merges the states of a cluster's blocks, which have segments of the same rows, in the order of
// the segments, through distributed shared memory.
#include <fmt/format.h>

#include "codegen/attention/large_head/text.h"
#include "codegen/attention/mma/split_kv_merge.h"
#include "codegen/text/loop.h"
#include "codegen/text/operation_text.h"

namespace redfuser::codegen {

void LargeHeadText::finish_cluster() {
  emitter_.line(merge_cluster());
  columns_ /= wide_.cluster;
  first_column_ = "part_column + ";
  write_rows();
  // The block's shared memory must stay until the others have read its state.
  emitter_.line("ptx_cluster_wait();");
}

// Afterwards o (the block's part of the columns), the scalars and references are those of the
// merged state. From the arrival on only other blocks read this block's memory.
std::string LargeHeadText::merge_cluster() {
  const int head = state_head(form_), own = columns_ / 8, part = own / wide_.cluster;
  emitter_.open();
  emitter_.line(fmt::format(
      "float* const own_heads = reinterpret_cast<float*>(tiles_at + {1});\n"
      "store_parts<{0}>(tiles_at + (group - 1) * {0} * kPartBytes, o);\n"
      "if (group == 1 && pair == 0) {{\n{2}}}\nptx_cluster_arrive();\nptx_cluster_wait();",
      own, layout_.heads,
      unrolled("h", 2,
               fmt::format("float* const state = own_heads + (tile_row + h * 8) * {};\n{}", head,
                           head_stores()))));
  emitter_.line(fmt::format(
      "const int first_part = (rank * 2 + group - 1) * {0}, part_column = first_part * 8;\n"
      "float values[{1}][{0}][4], heads[{1}][2][{2}];\n"
      "load_heads(heads, q_tile + {3}, tile_row);\n"
      "load_parts(values, q_tile + first_part * kPartBytes);",
      part, wide_.cluster, head, layout_.heads));
  const States states = {fmt::format("#pragma unroll\nfor (int i = 0; i < {}; ++i)", wide_.cluster),
                         "heads[i][h][{}]", "values[i][n][x]"};
  merge_heads(states);
  columns_ /= wide_.cluster;
  merge_values(states);
  columns_ *= wide_.cluster;
  emitter_.line("ptx_cluster_arrive();");
  return emitter_.close();
}

void LargeHeadText::bind_states(const States& states) {
  auto head = [&](size_t place) { return fmt::format(fmt::runtime(states.head), place); };
  const size_t accumulators = rows_.accumulators.size(), references = rows_.references.size();
  for (size_t k = 0; k < accumulators; ++k) {
    if (is_value(k)) continue;
    leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), head(k), DType::Float32);
  }
  for (size_t r = 0; r < references; ++r) {
    const auto number = static_cast<int64_t>(r);
    leaves_.bind(ir::LeafKind::OldResult, number, head(accumulators + r), DType::Float32);
    leaves_.bind(ir::LeafKind::NewResult, number, fmt::format("r{}[h]", r), DType::Float32);
  }
  leaves_.bind(
      ir::LeafKind::Count, 0,
      fmt::format("static_cast<long long>(__float_as_int({}))", head(accumulators + references)),
      DType::Int64);
}

void LargeHeadText::merge_references(size_t done) {
  for (size_t r = 0; r < rows_.references.size(); ++r) {
    if (static_cast<size_t>(rows_.references[r].ready_after) != done) continue;
    emitter_.open();
    for (size_t k = 0; k < done; ++k) {
      if (is_value(k)) continue;
      leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(k), fmt::format("a{}[h]", k),
                   DType::Float32);
    }
    leaves_.bind(ir::LeafKind::Count, 0, "folded", DType::Int64);
    emitter_.line(fmt::format("r{}[h] = {};", r,
                              emitter_.emit_as(rows_.references[r].value, DType::Float32)));
    const std::string text = emitter_.close();
    emitter_.line(unrolled("h", 2, text));
  }
}

void LargeHeadText::merge_heads(const States& states) {
  const size_t count = rows_.accumulators.size() + rows_.references.size();
  emitter_.line(
      fmt::format("folded = 0;\n{} {{\nconstexpr int h = 0;\nfolded += __float_as_int({});\n}}",
                  states.loop, fmt::format(fmt::runtime(states.head), count)));
  merge_references(0);
  for (size_t k = 0; k < rows_.accumulators.size(); ++k) {
    if (!is_value(k)) {
      const cascade::Accumulator& a = rows_.accumulators[k];
      emitter_.open();
      bind_states(states);
      const std::string moved = a.transport ? emitter_.emit_as(a.transport, a.dtype)
                                            : fmt::format(fmt::runtime(states.head), k);
      emitter_.line(
          fmt::format("a{0}[h] = {1}::apply(a{0}[h], {2});", k, combiner_of(a.reduction), moved));
      const std::string text = emitter_.close();
      emitter_.line(unrolled("h", 2,
                             fmt::format("a{}[h] = {};\n{} {{\n{}}}\n", k,
                                         identity_of(a.reduction, a.dtype), states.loop, text)));
    }
    merge_references(k + 1);
  }
}

void LargeHeadText::merge_values(const States& states) {
  const cascade::Accumulator& a = rows_.accumulators[form_.value_accumulator];
  const int part = columns_ / 8;
  emitter_.line(unrolled("n", part, "o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0;\n"));
  emitter_.open();
  bind_states(states);
  emitter_.open();
  emitter_.line("const int x = h * 2 + e;");
  leaves_.bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), states.value,
               DType::Float32);
  const std::string moved =
      a.transport ? emitter_.emit_as(a.transport, DType::Float32) : states.value;
  emitter_.line(fmt::format("o[n][x] += {};", moved));
  const std::string element = emitter_.close();
  emitter_.line(unrolled("n", part, unrolled("e", 2, element) + "\n"));
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{} {{\n{}}}", states.loop, unrolled("h", 2, text) + "\n"));
}

}  // namespace redfuser::codegen
