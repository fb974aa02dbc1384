#include "codegen/elementwise/clear_kernel.h"

#include <fmt/format.h>

namespace redfuser::codegen {

KernelLaunch clear_kernel(StepBuilder& builder, const std::string& name, int64_t scratch,
                          ir::Expr count) {
  constexpr int kThreads = 256;
  KernelText kernel = builder.kernel();
  const std::string buffer = kernel.buffer(scratch, true);
  const std::string body = fmt::format(
      "const long long at = blockIdx.x * {}ll + threadIdx.x;\nif (at < {}) {}[at] = 0;\n", kThreads,
      kernel.size(count), buffer);
  KernelLaunch launch = kernel.launch(name, "numbers of blocks\n", {}, "", body, kThreads);
  launch.grid[0] = ceil_div(builder.pool(), count, kThreads);
  return launch;
}

}  // namespace redfuser::codegen
