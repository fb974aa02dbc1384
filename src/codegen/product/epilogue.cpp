#include <fmt/format.h>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/product/product_text.h"

namespace redfuser::codegen {
namespace {

constexpr int kStagedWarpBytes = ProductText::kStagedBytes / 8;

bool whole(ir::Expr size, int tile) { return size->is_constant() && size->integer % tile == 0; }

}  // namespace

std::string_view ProductText::staged_type() const {
  const DType dtype = group_.epilogue().products[0]->dtype;
  return storage_type(size_of(dtype) == 2 ? dtype : DType::Float32);
}

void ProductText::finish() {
  const DType out = builder_.dtype_of(group_.epilogue().value);
  // For unaligned rows adjacent threads write adjacent elements.
  const bool grouped = group_.consecutive() && multiple(pool_, call_.n);
  width_ = grouped ? kWidth / static_cast<int>(calls_.size()) : 1;
  emitter_.set_fast_math(size_of(out) == 2);
  const std::string columns = width_ > 1 ? read_columns() : "";
  emitter_.open();
  bind_coordinates(emitter_, step_.batch, "place.batch");
  const auto write = [&] {
    for (size_t i = 0; i < calls_.size(); ++i) {
      emitter_.line(fmt::format(
          "float sums{0}[{1}];\nstaged_group(sums{0}, staged + line % kStagedLines<{2}> * "
          "kStagedPitch<{2}> + {3} + part);",
          i, width_, staged_type(), i * static_cast<size_t>(tile_columns())));
    }
    group_.load(width_, true);
    if (width_ == 1) group_.load(width_, false);
    group_.write(width_, [](size_t i) { return fmt::format("sums{}[v]", i); });
  };
  if (width_ > 1) {
    emitter_.line(fmt::format("const {};\n{}", part(), first_column("return")));
    in_lines(2, write);
  } else {
    in_lines(1, [&] { in_parts(write); });
  }
  add_tiles(columns, emitter_.close());
}

void ProductText::in_lines(int unroll, const std::function<void()>& write) {
  emitter_.open();
  emitter_.line("const long long row = top + line;");
  bind_coordinates(emitter_, group_.rows(), "row");
  write();
  emitter_.line(fmt::format("#pragma unroll {}\nfor (int line = from; line < end; ++line) {{\n{}}}",
                            unroll, emitter_.close()));
}

void ProductText::in_parts(const std::function<void()>& write) {
  emitter_.open();
  emitter_.line(first_column("continue"));
  write();
  emitter_.line(fmt::format("#pragma unroll\nfor ({}; part < {}; part += 32 * {}) {{\n{}}}", part(),
                            tile_columns(), width_, emitter_.close()));
}

std::string ProductText::part() const {
  return fmt::format("int part = (threadIdx.x & 31) * {}", width_);
}

std::string ProductText::first_column(std::string_view beyond) {
  const bool whole_tiles = whole(call_.n, tile_columns());
  return fmt::format("const long long first = place.column + part, valid = {};\n{}",
                     whole_tiles ? std::to_string(width_) : kernel_.size(call_.n) + " - first",
                     whole_tiles ? "" : fmt::format("if (valid <= 0) {};\n", beyond));
}

std::string ProductText::read_columns() {
  std::string declared;
  emitter_.open();
  emitter_.line(fmt::format("const {};\nconst bool vector = all_aligned;\n{}", part(),
                            first_column("return")));
  bind_coordinates(emitter_, step_.batch, "place.batch");
  group_.load(width_, false, &declared);
  return fmt::format("{}auto read_columns = [&](const TilePlace& place) {{\n{}}};\n", declared,
                     emitter_.close());
}

void ProductText::add_tiles(const std::string& columns, const std::string& body) {
  const std::string vector = width_ > 1 ? group_.all_aligned_text(width_) : "false";
  // Two loops, so neither has a branch on alignment inside.
  auto lines_of = [&](bool aligned) {
    return fmt::format("constexpr bool vector = {};\n{}", aligned, body);
  };
  const bool decided = vector == "true" || vector == "false";
  const std::string lines = decided ? lines_of(vector == "true")
                                    : fmt::format("if (all_aligned) {{\n{}}} else {{\n{}}}\n",
                                                  lines_of(true), lines_of(false));
  const std::string_view staged = staged_type();
  emitter_.line(fmt::format(
      "const bool all_aligned = {0};\n{9}"
      "{1}* staged = reinterpret_cast<{1}*>(memory + (ring_at - start) + kTileStages * "
      "kTileBytes + warp * {2});\n"
      "auto finish = [&](const TilePlace& place, int from, int to) {{\n"
      "const int top = place.row + warp * kWarpLines, end = {3};\nif (from >= end) return;\n"
      "{4}}};\nTilePlace last = {{}};\nbool waits = false;\nunsigned use = 0;\n{5}"
      "float d[kTileColumns / 8][4];\n"
      "use = multiply_tile<{6}, {7}>(d, ring_at, ring, use, steps, warp / 4, [&](int step) {{\n"
      "if (waits) finish(last, finish_from(step, steps), finish_from(step + 1, steps));\n}});\n"
      "{8}}}\nif (waits) finish(last, 0, kWarpLines);",
      vector, staged, kStagedWarpBytes,
      whole(call_.m, kTileRows) ? "to"
                                : fmt::format("min(to, {} - top)", as_int(kernel_.size(call_.m))),
      lines, each_tile(), storage_type(call_.dtype), by_rows_, stage(), columns));
}

// 16-bit sums stay in shared memory until the next tile's main loop hides their epilogue. fp32 sums
// do not fit: their epilogue runs at once, in two halves.
std::string ProductText::stage() const {
  const std::string columns = width_ > 1 ? "read_columns(place);\n" : "";
  const std::string_view later =
      "__syncwarp();\nstage_lines(d, staged, 0);\nstage_lines(d, staged, 1);\n__syncwarp();\n"
      "last = place;\nwaits = true;\n";
  const std::string_view now =
      "#pragma unroll\nfor (int r = 0; r < 2; ++r) {\n__syncwarp();\n"
      "stage_lines(d, staged, r);\n__syncwarp();\n"
      "finish(place, r * kStagedLines<float>, (r + 1) * kStagedLines<float>);\n}\n";
  return columns + std::string(staged_type() == "float" ? now : later);
}

}  // namespace redfuser::codegen
