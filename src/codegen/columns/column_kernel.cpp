#include "codegen/columns/column_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "codegen/text/operation_text.h"

#include "codegen/columns/column_functor.h"

namespace redfuser::codegen {
namespace {

using Part = ColumnConfig::Part;

// The elements that every thread has in every tile.
int64_t filled(const FlatStreaming& form, const ColumnConfig& config) {
  ir::Expr length = form.length();
  if (!length->is_constant() || length->integer == 0 || !config.by_warps()) return 0;
  if (config.whole && config.cluster == 1) return length->integer / config.along;
  const int64_t unit = config.whole ? config.capacity() : config.tile();
  return length->integer % unit == 0 ? config.chunks : 0;
}

int slots_of(const ColumnConfig& config) {
  if (config.cluster > 1) return (config.shares() + 1) * config.rows();
  return config.shares() > 1 ? config.shares() * config.rows() : 0;
}

}  // namespace

int column_static_bytes(const ColumnConfig& config, int64_t state_bytes) {
  return static_cast<int>(slots_of(config) * state_bytes) +
         (config.part == Part::Segment ? 2 * 8 : 0);
}

ir::Expr column_segment(ir::ExprPool& pool, const FlatStreaming& form, const ColumnConfig& config) {
  if (config.part == Part::Row) return form.length();
  ir::Expr tiles = ceil_div(pool, form.length(), int64_t{1} * config.tile() * config.segments);
  return pool.mul(pool.integer(config.tile()), tiles);
}

ir::Expr column_groups(ir::ExprPool& pool, const ColumnForm& form, const ColumnConfig& config) {
  return pool.mul(product_of(pool, extents_of(pool, form.outer)),
                  ceil_div(pool, form.columns(), config.rows()));
}

ir::Expr column_segments(ir::ExprPool& pool, const FlatStreaming& form,
                         const ColumnConfig& config) {
  if (config.part == Part::Row) return pool.integer(1);
  ir::Expr segment = column_segment(pool, form, config);
  ir::Expr last = pool.sub(segment, pool.integer(1));
  return pool.floordiv(pool.add(form.length(), last), segment);
}

KernelLaunch column_kernel(StepBuilder& builder, const ColumnForm& form, const ColumnConfig& config,
                           int64_t states) {
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  const bool fast = rounds_smoothly(builder, form.rows);
  ColumnFunctor functor(kernel, form, config.width, fast);
  const std::string before = functor.text();
  // Outputs and reads are members; what follows are arguments of the main loop alone.
  const std::string values = kernel.member_values();
  const std::string vector = functor.vector_condition();
  std::string body = fmt::format("using Tile = ColumnTile<{}, {}, {}, {}, {}, RowPart::{}, {}>;\n",
                                 config.across, config.along, config.chunks, config.whole,
                                 filled(form.rows, config), part_name(config.part), config.cluster);
  std::string slots = "nullptr", stored = "nullptr", counter = "nullptr";
  if (slots_of(config) > 0) {
    slots = "slots";
    body += fmt::format("__shared__ State slots[{}];\n", slots_of(config));
  }
  if (config.part != Part::Row) {
    stored = fmt::format("reinterpret_cast<State*>({})",
                         kernel.buffer(states, config.part != Part::Finish));
    if (config.part == Part::Finish) {
      stored = fmt::format("const_cast<State*>(reinterpret_cast<const State*>({}))",
                           kernel.buffer(states));
    }
  }
  if (config.part == Part::Segment) counter = kernel.counter();
  const std::string arguments =
      fmt::format("{}, {}, static_cast<int>({}), static_cast<int>({}), {}, {}", slots,
                  kernel.size(form.columns()), kernel.size(form.rows.length()),
                  kernel.size(column_segment(pool, form.rows, config)), stored, counter);
  const auto call = [&](const char* aligned) {
    return fmt::format("const Form<{}> form{{{}}};\nfold_columns<Tile>(form, {});\n", aligned,
                       values, arguments);
  };
  if (vector == "true" || vector == "false") {
    body += call(vector.c_str());
  } else {
    body += fmt::format("if ({}) {{\n{}}} else {{\n{}}}\n", vector, call("true"), call("false"));
  }
  KernelLaunch launch =
      kernel.launch(part_family("column", config.part, config.cluster, config.whole),
                    form.rows.comment, {"device/columns.cuh"}, before, body, config.threads());
  launch.config = config.parameters();
  launch.static_shared = column_static_bytes(config, state_bytes(form.rows));
  launch.cluster = config.cluster;
  launch.grid[0] = pool.mul(
      pool.mul(column_groups(pool, form, config), column_segments(pool, form.rows, config)),
      pool.integer(config.cluster));
  return launch;
}

}  // namespace redfuser::codegen
