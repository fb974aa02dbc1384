#include "codegen/attention/mma/flash_mma.h"

#include <algorithm>

#include <fmt/format.h>

#include "codegen/attention/mma/mma_functor.h"

namespace redfuser::codegen {
namespace {

// Config of src/device/attention/mma.cuh.
std::string config_text(const MmaFunctor& functor, const FlashMmaConfig& config, int shared) {
  return fmt::format(
      "struct Config {{\nstatic constexpr int kWarps = {}, kStages = {}, kShared = {};\n{}}};\n",
      config.warps, config.stages, shared, functor.config(2));
}

// Blocks of a multiprocessor that shared memory has room for, if they leave a thread registers for
// the scores and sums of 64 keys and columns: with a few more the compiler would lose a block.
int resident_blocks(const Target& target, const FlashMmaConfig& config, int shared) {
  constexpr int kThreadRegisters = 168;
  const int by_registers =
      select::kRegistersOfMultiprocessor / (kThreadRegisters * config.warps * 32);
  return std::min(by_registers, (target.shared_bytes + kBlockReserved) / (shared + kBlockReserved));
}

}  // namespace

KernelLaunch flash_mma_kernel(StepBuilder& builder, const AttentionSpec& form,
                              const FlashMmaConfig& config) {
  ir::ExprPool& pool = builder.pool();
  MmaFunctor functor(builder, form, config.keys);
  KernelText& kernel = functor.kernel();
  const int shared = flash_mma_shared_bytes(builder.target, form, config);
  ir::Expr row_tiles =
      ceil_div(pool, form.row ? form.row->extent() : pool.integer(1), config.rows());
  const std::string before = config_text(functor, config, shared) + functor.text(false);
  const std::string operands = functor.operands(0), lines = functor.lines(),
                    length = functor.length();
  const std::string body =
      fmt::format("flash_mma<Config>({}, {}, {}, {}, {});\n", functor.construction(), operands,
                  lines, length, kernel.size(row_tiles));
  KernelLaunch launch =
      kernel.launch("attention", form.rows.comment, {"device/attention/mma.cuh"}, before, body,
                    config.warps * 32, resident_blocks(builder.target, config, shared));
  launch.config = config.parameters();
  launch.shared = shared;
  launch.grid[0] = pool.mul(row_tiles, product_of(pool, extents_of(pool, form.others)));
  return launch;
}

}  // namespace redfuser::codegen
