// The result of compile().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpu/checks/position_guard.h"
#include "fuse/plan.h"
#include "redfuser/redfuser.h"
#include "runtime/program/cpu_kernels.h"

namespace redfuser::runtime {

// Immutable once compiled: sessions read it from several threads. Code that makes expressions of
// the graph's afterwards uses a clone of the graph.
struct CompiledProgram {
  std::shared_ptr<const onnx::LoadedModel> model;  // keeps mapped weights alive
  bool fused = true;                               // CompileOptions::fuse
  fuse::Plan plan;
  CpuKernels cpu_kernels;
  std::vector<StepInfo> steps;
  // By step: the positions that are checked before it runs on the CPU.
  std::vector<std::vector<cpu::PositionGuard>> guards;
  // Checks that depend on inputs alone, on every device.
  std::vector<cpu::PositionGuard> input_guards;
  // By symbol number; empty where no value's shape has the symbol.
  std::vector<std::string> symbol_names;
  // By ValueId: the symbols in the value's shape.
  std::vector<std::vector<int64_t>> shape_symbols;

  const ir::Graph& graph() const { return *plan.graph; }
};

}  // namespace redfuser::runtime
