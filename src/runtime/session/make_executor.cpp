#include "runtime/session/make_executor.h"

#include "base/error.h"
#include "onnx/import/import.h"
#include "runtime/cpu/cpu_executor.h"
#include "runtime/cpu/evaluating_executor.h"
#include "runtime/cpu/reference_executor.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "runtime/session/values_executor.h"

namespace redfuser::runtime {

std::unique_ptr<Executor> make_executor(std::shared_ptr<const CompiledProgram> program,
                                        const SessionOptions& options) {
  if (options.device == "reference") return make_reference_executor(std::move(program), options);
  const bool decided = !onnx::deciding_inputs(*program->model).empty();
  const bool on_cuda = options.device == "cuda";
  if (on_cuda && decided && !program->model->run_time_structure().empty() && has_gpu()) {
    return make_values_executor(std::move(program), options);
  }
  if (const std::string& needs = program->model->needs_values; !needs.empty()) {
    if (on_cuda) user_error("no plan for a GPU: {}", needs);
    return make_evaluating_executor(std::move(program), options);
  }
  if (on_cuda) {
    const bool whole = program->parts.of(*program).empty();
    if (!decided || (whole && cpu_reason(program, options).empty())) {
      return make_cuda_executor(std::move(program), options);
    }
    return make_values_executor(std::move(program), options);
  }
  if (options.device == "cpu") return make_cpu_executor(std::move(program), options);
  if (options.device != "auto") {
    user_error("the device is cpu, cuda, reference or auto, not \"{}\"", options.device);
  }
  std::string reason;
  try {
    reason = cpu_reason(program, options);
    if (reason.empty() || has_large_steps(program, options)) {
      return make_cuda_executor(program, options);
    }
  } catch (const UserError& error) {
    reason = error.what();
  }
  auto executor = make_cpu_executor(std::move(program), options);
  if (has_gpu()) executor->notes.push_back("running on the CPU, not the GPU: " + reason);
  return executor;
}

}  // namespace redfuser::runtime
