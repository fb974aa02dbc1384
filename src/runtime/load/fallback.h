// What computes a step when a kernel of the first choice fails to compile, load or launch.
#pragma once

#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "codegen/joined/joined_steps.h"
#include "runtime/load/loader.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// "a kernel does not compile (...): error: ...": an error in one line.
std::string summary_of(const std::exception_ptr& error);

class Fallback {
 public:
  // Of the program's steps; all must outlive this.
  Fallback(const CompiledProgram& program, const codegen::Target& target,
           const codegen::JoinedSteps& joined, KernelLoader& loader)
      : program_(program), target_(target), joined_(joined), loader_(loader) {}

  // Replaces every step that has failed by the next offer that loads. Throws UserError with the
  // user's node where none is left, and the error itself if it is the caller's, as for a driver
  // that is too old for all kernels.
  void replace(std::vector<LoadedGpuStep>& steps);
  // The same of one step, a kernel of which failed to launch.
  LoadedGpuStep next(size_t step, const codegen::GpuStep& failed, const std::string& family,
                     const std::exception_ptr& error);

  // Warnings since the last call. Steps that failed alike are one.
  std::vector<std::string> take_notes();

 private:
  codegen::GpuStep without(size_t step, const codegen::GpuStep& failed, const std::string& family,
                           const std::exception_ptr& error);

  const CompiledProgram& program_;
  const codegen::Target& target_;
  const codegen::JoinedSteps& joined_;
  KernelLoader& loader_;
  // By family that failed, error, and family that is taken instead: the steps' labels.
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> failures_;
};

}  // namespace redfuser::runtime
