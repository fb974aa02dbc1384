#include "runtime/session/make_executor.h"

#include "base/error.h"
#include "onnx/import/import.h"
#include "runtime/cpu/cpu_executor.h"
#include "runtime/cpu/evaluating_executor.h"
#include "runtime/cpu/reference_executor.h"
#include "runtime/gpu/executor.h"
#include "runtime/session/values_executor.h"

namespace redfuser::runtime {

std::unique_ptr<Executor> make_executor(std::shared_ptr<const CompiledProgram> program,
                                        const SessionOptions& options) {
  if (options.device == "reference") return make_reference_executor(std::move(program), options);
  const std::string on_cpu = program->model->run_time_structure();
  if (!on_cpu.empty() && options.device == "cuda") {
    if (!onnx::deciding_inputs(*program->model).empty() && has_gpu()) {
      return make_values_executor(std::move(program), options);
    }
    user_error("no plan for a GPU: {}", on_cpu);
  }
  if (!program->model->needs_values.empty()) {
    return make_evaluating_executor(std::move(program), options);
  }
  if (options.device == "cuda") {
    if (onnx::deciding_inputs(*program->model).empty() ||
        cuda_program(program, options)->host().empty()) {
      return make_cuda_executor(std::move(program), options);
    }
    return make_values_executor(std::move(program), options);
  }
  if (options.device == "cpu") return make_cpu_executor(std::move(program), options);
  if (options.device != "auto") {
    user_error("the device is cpu, cuda, reference or auto, not \"{}\"", options.device);
  }
  if (!on_cpu.empty()) return make_cpu_executor(std::move(program), options);
  std::string reason;
  try {
    const std::shared_ptr<const GpuProgram> gpu = cuda_program(program, options);
    if (gpu->host().empty() || gpu->has_large_steps()) return make_cuda_executor(program, options);
    reason = gpu->host().notes().front();
  } catch (const UserError& error) {
    reason = error.what();
  }
  auto executor = make_cpu_executor(std::move(program), options);
  if (has_gpu()) executor->notes.push_back("running on the CPU, not the GPU: " + reason);
  return executor;
}

}  // namespace redfuser::runtime
