#include "codegen/thin_rows/thin_rows_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/product/thin_kernel.h"
#include "codegen/rows/row_functor.h"
#include "select/by_time.h"

namespace redfuser::codegen {
namespace {

// Words of a tile of a thread that are in registers, beside the wide matrices' first elements:
// where all threads have a row, and where a warp has.
constexpr int kBlockWords = 32, kWarpWords = 16;

SinglePassConfig rows_config(StepBuilder& builder, const ThinRowsForm& form,
                             const ThinRowsClass& of, const ThinConfig& config) {
  const bool single = of.most == 1;
  const int width = row_width(builder, form.rows), bytes = folded_bytes(builder, form.rows);
  const int most =
      std::max((single ? kBlockWords : kWarpWords) * 4 / std::max(width * bytes, 1), 1);
  SinglePassConfig rows;
  rows.everywhere = true;
  rows.threads = config.warps * 32;
  rows.lanes = single ? rows.threads : 32;
  rows.width = width;
  const int step = rows.lanes * width;
  const auto chunks = static_cast<int>((form.thin.depth->integer + step - 1) / step);
  rows.whole = chunks <= most;
  rows.chunks = std::min(chunks, most);
  return rows;
}

// Microseconds, not measured yet: of a row's first loads, reductions and stores; of the loads of
// each further tile; of the exchange between warps.
constexpr double kRow = 0.9, kTile = 0.5, kExchange = 0.15;

double thin_rows_time(const ThinRowsForm& form, const ThinRowsClass& of, const ThinConfig& config,
                      const KnownSizes& sizes, const Target& target) {
  const auto bytes = static_cast<double>(size_of(form.thin.dtype));
  const double depth = static_cast<double>(form.thin.depth->integer), lines = of.most;
  const double blocks =
      std::ceil(static_cast<double>(sizes.of(form.thin.extent)) / config.wide) * config.blocks;
  const auto block_bytes =
      static_cast<double>(form.shared_bytes(of.most) + thin_static_bytes(form.thin, config));
  const double resident =
      std::floor((target.shared_bytes + kBlockReserved) / (block_bytes + kBlockReserved));
  const double waves = std::ceil(blocks / (std::max(resident, 1.0) * target.multiprocessors));
  const bool single = of.most == 1;
  const double words = single ? 32.0 * config.warps * kBlockWords : 32.0 * kWarpWords;
  const double turns = single ? 1 : std::ceil(lines / config.warps);
  const double tiles = std::ceil(depth * bytes / (4 * words));
  const double row = kRow + kTile * 2 * (tiles - 1) + (single ? kExchange : 0);
  return thin_time(form.thin, config, lines, sizes, target) + waves * turns * row +
         blocks * lines * depth * bytes / target.l2_rate();
}

}  // namespace

std::vector<ThinRowsClass> thin_rows_classes(ir::ExprPool& pool, const ThinRowsForm& form) {
  std::vector<ThinRowsClass> classes;
  ir::Expr lines = form.thin.lines;
  const auto single = pool.make(ir::ExprOp::LessEqual, {lines, pool.integer(1)});
  for (const ThinClass& each : thin_classes(pool, form.thin)) {
    if (lines->is_constant()) {
      classes.push_back({each.padded, static_cast<int>(lines->integer), each.when});
    } else if (classes.empty() && each.padded > 1) {
      ir::Expr several = pool.make(ir::ExprOp::Not, {single});
      classes.push_back({each.padded, 1, pool.make(ir::ExprOp::And, {each.when, single})});
      classes.push_back(
          {each.padded, each.padded, pool.make(ir::ExprOp::And, {each.when, several})});
    } else {
      classes.push_back({each.padded, each.padded, each.when});
    }
  }
  return classes;
}

KernelLaunch thin_rows_kernel(StepBuilder& builder, const ThinRowsForm& form,
                              const ThinRowsClass& of, const ThinConfig& config) {
  const SinglePassConfig rows = rows_config(builder, form, of, config);
  const auto make_lines = [&](KernelText& kernel) {
    ThinLines lines;
    lines.family = kThinRowsFamily;
    lines.header = "device/product/thin_rows.cuh";
    lines.pitch = builder.pool().integer(form.pitch);
    const std::string name = kernel.shared_buffer(form.lines);
    SinglePassConfig tile = rows;
    tile.whole = true;  // outputs find their tile in registers
    RowFunctor functor(kernel, form.rows, form.rows, tile, rounds_smoothly(builder, form.rows));
    const std::string text = functor.text(), values = kernel.member_values();
    lines.vector = functor.vector_condition();
    const int staging = functor.reads().staging_words();
    lines.before = row_config(form.rows, rows, lines.vector != "false") + text;
    lines.lines = fmt::format(
        "{0}* const {1} = reinterpret_cast<{0}*>(tile_smem);\nconst {0}* const lines = {1};\n"
        "{2}const Form form{{{3}}};\n",
        storage_type(form.thin.dtype), name,
        row_memory(rows, state_bytes(form.rows), staging, "states"), values);
    lines.make =
        fmt::format("thin_rows<Config>(form, memory, {}, {})", as_int(kernel.size(form.thin.lines)),
                    as_int(kernel.size(form.rows.length())));
    lines.shared = static_cast<int>(form.shared_bytes(of.most));
    lines.static_shared = single_pass_static_bytes(rows, state_bytes(form.rows), staging);
    return lines;
  };
  return thin_kernel(builder, form.product.step, form.thin, config, form.product.epilogue,
                     form.product.comment + form.rows.comment, make_lines);
}

std::vector<Candidate> thin_rows_choices(const ThinRowsForm& form, const ThinRowsClass& of,
                                         const KnownSizes& sizes, const Target& target) {
  std::vector<Candidate> choices;
  for (Candidate& each : thin_choices(form.thin, of.padded, of.most, sizes, target)) {
    const ThinConfig config = thin_config(each.choice);
    constexpr int64_t kStates = 4 << 10;  // of rows, at most
    const int64_t bytes =
        form.shared_bytes(of.most) + thin_static_bytes(form.thin, config) + kStates;
    if (bytes > target.shared_bytes) continue;
    each.choice.family = kThinRowsFamily;
    each.time = thin_rows_time(form, of, config, sizes, target);
    choices.push_back(std::move(each));
  }
  return select::by_time(std::move(choices));
}

}  // namespace redfuser::codegen
