#include "codegen/scan/scan_kernel.h"

#include <fmt/format.h>

#include "codegen/scan/scan_functor.h"

namespace redfuser::codegen {
namespace {

ir::Expr lines_of(ir::ExprPool& pool, const ScanForm& form) {
  return product_of(pool, extents_of(pool, form.lines));
}

// What a block takes the tiles of: lines, or strips of lines beside each other.
ir::Expr strips_of(ir::ExprPool& pool, const ScanForm& form, const ScanFacts& facts,
                   const ScanConfig& config) {
  ir::Expr lines = lines_of(pool, form);
  if (!form.across) return lines;
  return pool.mul(lines, ceil_div(pool, form.across->extent(), scan_block_lines(facts, config)));
}

ir::Expr tiles_of(ir::ExprPool& pool, const ScanForm& form, const ScanFacts& facts,
                  const ScanConfig& config) {
  return ceil_div(pool, form.length(), scan_tile(facts, config));
}

ir::Expr grid_of(ir::ExprPool& pool, const ScanForm& form, const ScanFacts& facts,
                 const ScanConfig& config) {
  ir::Expr strips = strips_of(pool, form, facts, config);
  if (config.shared) return pool.mul(strips, tiles_of(pool, form, facts, config));
  if (!form.across) strips = ceil_div(pool, strips, scan_block_lines(facts, config));
  // Nothing is launched for empty lines.
  if (form.length()->is_constant()) {
    return form.length()->integer > 0 ? strips : pool.integer(0);
  }
  return pool.mul(strips, pool.make(ir::ExprOp::Min, {form.length(), pool.integer(1)}));
}

std::string call_text(KernelText& kernel, const ScanForm& form, const ScanConfig& c,
                      int64_t words) {
  const std::string columns = form.across ? "columns" : "lines";
  std::string arguments = "scan";
  if (!form.across || c.shared) {
    arguments += ", " + kernel.size(lines_of(kernel.pool(), form));
  }
  if (form.across) arguments += ", " + kernel.size(form.across->extent());
  arguments += ", " + kernel.size(form.length());
  if (c.shared) {
    arguments += ", " + kernel.buffer(words, true);
  }
  const std::string slots = form.across || c.team > 32 ? ", slots" : ", nullptr";
  const int along = c.threads / c.team;
  if (!c.shared) {
    return fmt::format("scan_{}<Scan, {}, {}, {}>({}{});\n", columns, c.team,
                       form.across ? along : c.threads, c.chunks, arguments, slots);
  }
  if (form.across) {
    return fmt::format("scan_columns_shared<Scan, {}, {}, {}>({}, slots, &number);\n", c.team,
                       along, c.chunks, arguments);
  }
  return fmt::format("scan_lines_shared<Scan, {}, {}>({}, slots, parts, &number);\n", c.threads,
                     c.chunks, arguments);
}

}  // namespace

ir::Expr scan_words(ir::ExprPool& pool, const ScanForm& form, const ScanFacts& facts,
                    const ScanConfig& config) {
  ir::Expr strips = strips_of(pool, form, facts, config);
  ir::Expr tiles = tiles_of(pool, form, facts, config);
  ir::Expr groups = ceil_div(pool, tiles, scan_group(facts, config));
  const int64_t values = form.across ? scan_block_lines(facts, config) : 1;
  const int64_t each = values * facts.state_bytes / 4;
  ir::Expr entries = pool.mul(strips, pool.add(tiles, groups));
  return pool.add(pool.mul(entries, pool.integer(each)), pool.integer(1));
}

KernelLaunch scan_kernel(StepBuilder& builder, const ScanForm& form, const ScanFacts& facts,
                         const ScanConfig& config, int64_t words) {
  KernelText kernel = builder.kernel();
  ScanFunctor functor(kernel, form, config.width);
  const std::string before = functor.text();
  const std::string members = kernel.member_values(), vector = functor.vector_condition();
  std::string body;
  if (const int slots = scan_slots(facts, config)) {
    body += fmt::format("__shared__ Scan::State slots[{}];\n", slots);
  }
  if (config.shared) {
    body += "__shared__ unsigned number;\n";
    if (!form.across) {
      body += fmt::format("__shared__ __align__(16) char parts[{} * kSlotBytes];\n",
                          config.threads / 32);
    }
  }
  body += fmt::format("const Scan scan{{{}, {}}};\n", members, vector);
  body += call_text(kernel, form, config, words);
  const std::string_view header = config.shared ? "device/scan_chain.cuh" : "device/scan.cuh";
  const std::string family =
      fmt::format("scan_{}{}", form.across ? "columns" : "lines", config.shared ? "_shared" : "");
  KernelLaunch launch = kernel.launch(family, form.comment, {header}, before, body, config.threads);
  launch.config = config.parameters();
  launch.static_shared = scan_static_bytes(facts, config);
  launch.grid[0] = grid_of(builder.pool(), form, facts, config);
  return launch;
}

}  // namespace redfuser::codegen
