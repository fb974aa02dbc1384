// Merges partial states of the same rows in registers. All of them are loaded before the first is
// used, so the loads overlap and cost one memory latency.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/attention/mma/split_kv_merge.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/text/loop.h"
#include "codegen/text/operation_text.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
// The empty state; `name` gives the name of an element of its head.
std::string SplitKvMerge::empty_head(const std::function<std::string(size_t)>& name) {
  emitter_.open();
  for (size_t k = 0; k < accumulators(); ++k) {
    if (tile_.is_value(k)) continue;
    const cascade::Accumulator& a = form_.rows.accumulators[k];
    const std::string identity = identity_of(a.reduction, a.dtype);
    emitter_.line(fmt::format("{} = {};", name(k), identity));
    tile_.leaves().bind(ir::LeafKind::State, static_cast<int64_t>(k), identity, a.dtype);
  }
  tile_.leaves().bind(ir::LeafKind::Count, 0, "0ll", DType::Int64);
  for (size_t r = 0; r < references(); ++r) {
    const ir::Expr value = form_.rows.references[r].value;
    emitter_.line(
        fmt::format("{} = {};", name(accumulators() + r), emitter_.emit_as(value, DType::Float32)));
  }
  return emitter_.close();
}

// Binds the partial state to the names of the head's elements.
std::string SplitKvMerge::merged_name(size_t place) const {
  return place < accumulators() ? fmt::format("merged_a{}", place)
                                : fmt::format("merged_r{}", place - accumulators());
}

void SplitKvMerge::merge_shared(const std::string& states, int count) {
  const int block = state_block(form_, rows_);
  emitter_.open();
  emitter_.line(fmt::format("float parts[{}][{}];", count, head()));
  emitter_.line(unrolled(
      "i", count,
      fmt::format("load_floats(parts[i], {} + i * {} + line * {});\n", states, block, head())));
  merge_parts(count, false,
              fmt::format("load_floats(values, {} + i * {});\n", columns_of(states), block));
  emitter_.line(fmt::format("{{\n{}}}", emitter_.close()));
}

// The thread's columns in the first block at `states`.
std::string SplitKvMerge::columns_of(const std::string& states) const {
  return fmt::format("{} + {} + line * {} + from", states, rows_ * head(), tile_.columns());
}

void SplitKvMerge::merge_global(const std::string& states, const std::string& count,
                                std::optional<int> known) {
  constexpr int kRegisters = 208, kMaxParts = 16;  // of the 255 that a thread has
  const int block = state_block(form_, rows_), columns = groups() * 4;
  const int own = static_cast<int>(accumulators() + references());
  int parts = std::clamp((kRegisters - columns) / (own + columns), 1, kMaxParts);
  const bool ahead = parts * (own + columns) + columns <= kRegisters;
  if (known) parts = std::min(parts, *known);
  const bool goes_on = !known || *known > parts;
  const auto guarded = [&](const std::string& text, const std::string& otherwise) {
    return goes_on ? fmt::format("if (done + i < count) {{\n{}}} else {{\n{}}}\n", text, otherwise)
                   : text;
  };
  const std::string zeros = unrolled("e", 4, "values[e] = 0;\n") + "\n";
  const std::string read =
      guarded(fmt::format("load_floats(values, {} + i * {});\n", columns_of("own"), block), zeros);
  emitter_.open();
  emitter_.line(
      fmt::format("const float* const own = {} + static_cast<long long>(done) * {};\n"
                  "float parts[{}][{}];",
                  states, block, parts + (goes_on ? 1 : 0), head()));
  if (ahead) emitter_.line(fmt::format("float ahead[{}][{}][4];", parts, groups()));
  std::string loads = fmt::format(
      "float (&part)[{}] = parts[{}];\n{}", head(), goes_on ? "i + 1" : "i",
      guarded(fmt::format("load_floats(part, own + i * {} + line * {});\n", block, head()),
              empty_head([](size_t place) { return fmt::format("part[{}]", place); }) +
                  fmt::format("part[{}] = 0;\n", count_place())));
  if (ahead) loads += for_groups("float (&values)[4] = ahead[i][g];\n" + read);
  emitter_.line(unrolled("i", parts, loads));
  merge_parts(parts, goes_on,
              ahead ? unrolled("e", 4, "values[e] = ahead[i][g][e];\n") + "\n" : read);
  const std::string text = emitter_.close();
  if (!goes_on) return emitter_.line(fmt::format("{{\nconstexpr int done = 0;\n{}}}", text));
  emitter_.line(fmt::format(
      "{}merged_count = 0;\n{}for (int done = 0, count = {}; done < count; done += {}) {{\n{}}}",
      empty_head([&](size_t place) { return merged_name(place); }),
      for_groups("merged_o[g][0] = merged_o[g][1] = merged_o[g][2] = merged_o[g][3] = 0;\n"), count,
      parts, text));
}

// Merges `parts` states, and the merged state itself if it `goes_on`. `columns`: the text that sets
// `values` to the columns of part i.
void SplitKvMerge::merge_parts(int parts, bool goes_on, const std::string& columns) {
  const int all = parts + (goes_on ? 1 : 0);
  loop_ = fmt::format(
      "#pragma unroll\nfor (int i = 0; i < {}; ++i) {{\nconst float (&part)[{}] = parts[i];\n", all,
      head());
  if (goes_on) {
    for (size_t place = 0; place < static_cast<size_t>(count_place()); ++place) {
      if (place < accumulators() && tile_.is_value(place)) continue;
      emitter_.line(fmt::format("parts[0][{}] = {};", place, merged_name(place)));
    }
    emitter_.line(fmt::format("parts[0][{}] = __int_as_float(merged_count);", count_place()));
  }
  merge_heads();
  const std::string start =
      goes_on ? fmt::format("{{\nconst float (&part)[{}] = parts[0];\n{}}}", head(),
                            moved_values("merged_o[g][e]", "="))
              : for_groups(
                    "merged_o[g][0] = merged_o[g][1] = merged_o[g][2] = merged_o[g][3] = "
                    "0;\n");
  emitter_.line(start);
  emitter_.line(unrolled(
      "i", parts,
      fmt::format("const float (&part)[{}] = parts[{}];\n{}", head(), goes_on ? "i + 1" : "i",
                  moved_values("values[e]", "+=", "float values[4];\n" + columns))));
}

// Elements of a part's value state, rescaled to the merged references.
std::string SplitKvMerge::moved_values(const std::string& element, const std::string& into,
                                       const std::string& before) {
  const cascade::Accumulator& a = form_.rows.accumulators[form_.value_accumulator];
  emitter_.open();
  bind_part();
  emitter_.open();
  emitter_.line(before);
  emitter_.open();
  tile_.leaves().bind(ir::LeafKind::State, static_cast<int64_t>(form_.value_accumulator), element,
                      DType::Float32);
  const std::string moved = a.transport ? emitter_.emit_as(a.transport, DType::Float32) : element;
  emitter_.line(fmt::format("merged_o[g][e] {} {};", into, moved));
  const std::string text = emitter_.close();
  emitter_.line(unrolled("e", 4, text));
  const std::string group = emitter_.close();
  emitter_.line(for_groups(group));
  return emitter_.close();
}

void SplitKvMerge::write_fours() {
  open_outputs();
  tile_.bind_row_results();
  for (const FlatStreaming::Output& output : form_.rows.outputs) write_four(output);
  const std::string text = emitter_.close();
  emitter_.line(fmt::format("{{\n{}}}", text));
}

void SplitKvMerge::write_four(const FlatStreaming::Output& output) {
  KernelText& kernel = tile_.kernel();
  const DType dtype = kernel.dtype_of(output.value);
  const bool columns = output.offset->depends_on(form_.column);
  const int64_t extent = columns ? form_.column->extent()->integer : 1;
  const std::string buffer = kernel.buffer(output.value, true);
  auto affine = affine_in(emitter_.pool(), output.offset, form_.column);
  const bool adjacent = columns && affine && affine->stride->is_constant(1) &&
                        !affine->base->depends_on(form_.column);
  emitter_.open();
  if (adjacent) emitter_.line(fmt::format("{} four[4];", value_type(dtype)));
  emitter_.open();
  emitter_.line("const long long column = from + e;\nconst float value = merged_o[g][e];");
  tile_.bind_results();
  const std::string value = emitter_.emit_as(output.body, dtype);
  emitter_.line(adjacent ? fmt::format("four[e] = {};", value)
                         : fmt::format("if (exists && column < {}) store({}, {}, {});", extent,
                                       buffer, emitter_.emit(output.offset), value));
  const std::string element = emitter_.close();
  emitter_.line(unrolled("e", 4, element));
  if (adjacent) {
    std::vector<ir::Expr> units = offset_units(emitter_.pool(), affine->base);
    units.push_back(form_.column->extent());
    emitter_.bind(form_.column, "from");
    emitter_.line(fmt::format("store_group<4>({0}, {1}, four, exists ? {2} - from : 0, {3});",
                              buffer, emitter_.emit(output.offset), extent,
                              all_aligned(kernel.multiples(units, 4), {buffer})));
  }
  const std::string group = emitter_.close();
  emitter_.line(for_groups(group));
}

}  // namespace redfuser::codegen
