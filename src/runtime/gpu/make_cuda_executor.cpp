#include "runtime/gpu/make_cuda_executor.h"

#include <algorithm>

#include "redfuser/error.h"
#include "runtime/gpu/executor.h"
#include "runtime/gpu/parts_executor.h"

namespace redfuser::runtime {
namespace {

// Of the parts, or of the whole program.
std::vector<std::shared_ptr<const GpuProgram>> gpu_programs(
    const std::shared_ptr<const CompiledProgram>& program, const SessionOptions& options) {
  std::vector<std::shared_ptr<const GpuProgram>> programs;
  for (const ProgramPart& part : program->parts.of(*program)) {
    programs.push_back(cuda_program(part.program, options));
  }
  if (programs.empty()) programs.push_back(cuda_program(program, options));
  return programs;
}

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(std::shared_ptr<const CompiledProgram> program,
                                             const SessionOptions& options) {
  if (program->parts.of(*program).empty()) {
    return std::make_unique<GpuExecutor>(std::move(program), options);
  }
  return std::make_unique<PartsExecutor>(std::move(program), options);
}

std::string cpu_reason(const std::shared_ptr<const CompiledProgram>& program,
                       const SessionOptions& options) {
  for (const auto& gpu : gpu_programs(program, options)) {
    if (!gpu->host().empty()) return host_notes(gpu->host().reasons()).front();
  }
  return "";
}

bool has_large_steps(const std::shared_ptr<const CompiledProgram>& program,
                     const SessionOptions& options) {
  const auto programs = gpu_programs(program, options);
  return std::any_of(programs.begin(), programs.end(),
                     [](const auto& gpu) { return gpu->has_large_steps(); });
}

bool has_gpu() {
  try {
    return cuda::Device::open() != nullptr;
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace redfuser::runtime
