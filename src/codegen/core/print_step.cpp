#include "codegen/core/print_step.h"

#include <fmt/format.h>

#include "base/error.h"
#include "codegen/core/device_text.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {
namespace {

class CallPrinter {
 public:
  explicit CallPrinter(const ir::ExprPool& pool) : pool_(pool) {}

  std::string operator()(const KernelLaunch& launch) const {
    std::string text =
        fmt::format("  {}\n    family {}\n    grid {}", launch.name,
                    to_string(KernelConfig{launch.family, launch.config}), of(launch.grid[0]));
    for (int i = 1; i < 3; ++i) {
      if (!is_one(launch.grid[i])) text += " x " + of(launch.grid[i]);
    }
    text += fmt::format(", block {}", launch.block);
    if (launch.cluster > 1) text += fmt::format(", cluster {}", launch.cluster);
    text += fmt::format(", shared memory {} bytes and {} static\n", launch.shared,
                        launch.static_shared);
    for (const std::string& parameter : launch.parameters) text += "    " + parameter + "\n";
    return text;
  }

  std::string operator()(const ProductCall& call) const {
    std::string text = fmt::format(
        "  library product, {} to {}\n    batch {}, m {}, n {}, k {}\n"
        "    a {} row {} column {} batch {} offset {}\n"
        "    b {} row {} column {} batch {} offset {}\n    c {} row {} batch {}\n",
        name_of(call.dtype), name_of(call.result), of(call.batch), of(call.m), of(call.n),
        of(call.k), of(call.a), of(call.a_row), of(call.a_column), of(call.a_batch),
        of(call.a_offset), of(call.b), of(call.b_row), of(call.b_column), of(call.b_batch),
        of(call.b_offset), of(call.c), of(call.c_row), of(call.c_batch));
    if (call.a_scale.defined()) {
      text += call.line_scales ? fmt::format("    scales {} of rows, {} of columns\n",
                                             of(call.a_scale), of(call.b_scale))
                               : fmt::format("    scale {}\n", of(call.a_scale));
    }
    if (call.bias.defined()) text += fmt::format("    bias {}\n", of(call.bias));
    if (call.addend.defined()) text += fmt::format("    addend {}\n", of(call.addend));
    return text;
  }

 private:
  static bool is_one(ir::Expr size) { return size == nullptr || size->is_constant(1); }

  std::string of(ir::Expr size) const { return size == nullptr ? "-" : to_string(pool_, size); }
  static std::string of(const BufferRef& buffer) {
    return buffer.value >= 0 ? fmt::format("%{}", buffer.value)
                             : fmt::format("scratch {}", buffer.scratch);
  }

  const ir::ExprPool& pool_;
};

}  // namespace

std::string to_string(const ir::ExprPool& pool, const GpuStep& step) {
  std::string text;
  for (size_t i = 0; i < step.offers.size(); ++i) {
    text += fmt::format("  {} {}\n", i == 0 ? "by" : "not", to_string(step.offers[i]));
  }
  for (const GpuCall& call : step.calls) text += std::visit(CallPrinter(pool), call);
  for (size_t i = 0; i < step.scratch.size(); ++i) {
    text += fmt::format("  scratch {}: {} bytes\n", i, to_string(pool, step.scratch[i].bytes));
  }
  return text;
}

std::string heading_of(const KernelLaunch& launch) {
  std::string text = fmt::format("// {}\n", launch.nodes);
  for (const std::string& parameter : launch.parameters) text += fmt::format("// {}\n", parameter);
  return text;
}

std::string cuda_text(const KernelLaunch& launch) {
  const std::string prelude = device_prelude(launch.headers);
  const size_t at = launch.source.find(prelude);
  RF_CHECK(at != std::string::npos, "{} has not the text of its headers", launch.name);
  std::string includes;
  for (const std::string_view header : launch.headers) {
    includes += fmt::format("#include \"{}\"\n", header);
  }
  std::string text = launch.source;
  return text.replace(at, prelude.size(), includes);
}

}  // namespace redfuser::codegen
