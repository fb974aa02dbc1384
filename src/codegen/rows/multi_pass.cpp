// The launch of a kernel that reduces rows pass by pass.
#include "codegen/rows/multi_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/rows/pass_functor.h"

namespace redfuser::codegen {
namespace {

const char* family_name(const MultiPassConfig& config) {
  if (config.chunks == 0) return "row_passes";
  return config.cluster > 1 ? "row_cluster" : "row_resident";
}

// RowThreads::kSlotsBytes of src/device/rows/multi_pass.cuh for each reduction.
int shared_bytes(const MultiPassConfig& config, int slots) {
  constexpr int kSlot = 16;
  return config.lanes == 32 ? 0 : slots * kSlot * (config.lanes / 32 + 1);
}

std::string config_text(const FlatStreaming& form, const MultiPassConfig& config) {
  ir::Expr length = form.length();
  const bool full =
      config.width == 1 || (length->is_constant() && length->integer % config.width == 0);
  return fmt::format(
      "struct Config {{\n"
      "static constexpr int kLanes = {}, kThreads = {}, kChunks = {}, kCluster = {};\n"
      "static constexpr bool kFull = {};\n}};\n",
      config.lanes, config.threads, config.chunks, config.cluster, full);
}

}  // namespace

KernelLaunch multi_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                               const MultiPassConfig& config) {
  ir::ExprPool& pool = builder.pool();
  KernelText kernel = builder.kernel();
  PassFunctor functor(kernel, form, config);
  const std::string text = functor.text();
  const std::string values = kernel.member_values(), vector = functor.vector_condition();
  const int shared = shared_bytes(config, std::max(functor.slots(), 1));
  ir::Expr rows = product_of(pool, extents_of(pool, form.cascade.rows));
  std::string body;
  if (shared > 0) body = fmt::format("__shared__ __align__(16) char slots[{}];\n", shared);
  body += fmt::format("const Form form{{{}}};\nreduce_rows<Config>(form, {}, {}, {}, {});\n",
                      values, shared > 0 ? "slots" : "nullptr", kernel.size(rows),
                      kernel.size(form.length()), vector);
  KernelLaunch launch =
      kernel.launch(family_name(config), form.comment, {"device/rows/multi_pass.cuh"},
                    config_text(form, config) + text, body, config.threads);
  launch.config = config.parameters();
  launch.cluster = config.cluster;
  launch.static_shared = shared;
  launch.grid[0] = config.lanes == 32 ? ceil_div(pool, rows, config.threads / 32)
                                      : pool.mul(rows, pool.integer(config.cluster));
  return launch;
}

}  // namespace redfuser::codegen
