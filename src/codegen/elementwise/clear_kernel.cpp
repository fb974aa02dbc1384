#include "codegen/elementwise/clear_kernel.h"

#include <fmt/format.h>

#include "codegen/elementwise/map_body.h"

namespace redfuser::codegen {

KernelLaunch clear_kernel(StepBuilder& builder, const std::string& name, int64_t scratch,
                          ir::Expr count) {
  KernelText kernel = builder.kernel();
  const std::string buffer = kernel.buffer(scratch, true);
  const std::string body =
      fmt::format("clear_numbers<{}>({}, {});\n", kMapThreads, buffer, kernel.size(count));
  KernelLaunch launch =
      kernel.launch(name, "numbers of blocks\n", {kMapHeader}, "", body, kMapThreads);
  launch.grid[0] = ceil_div(builder.pool(), count, kMapThreads);
  return launch;
}

}  // namespace redfuser::codegen
