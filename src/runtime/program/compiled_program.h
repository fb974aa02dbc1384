// The result of compile().
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cpu/checks/position_guard.h"
#include "fuse/growing/appends.h"
#include "fuse/plan.h"
#include "redfuser/redfuser.h"
#include "runtime/program/body_programs.h"
#include "runtime/program/cpu_kernels.h"
#include "runtime/program/overriding_programs.h"
#include "runtime/program/program_parts.h"

namespace redfuser::runtime {

// The label of the step that stands for a graph without a plan.
inline constexpr const char* kWholeGraph = "main graph";

// Immutable once compiled but for what it makes when it is first needed (kernels, programs of
// subgraphs), which is guarded: sessions read it from several threads. Code that makes expressions
// of the graph's afterwards uses a clone of the graph.
struct CompiledProgram {
  std::shared_ptr<const onnx::LoadedModel> model;  // keeps mapped weights alive
  CompileOptions options;
  fuse::Plan plan;
  CpuKernels cpu_kernels;
  std::vector<StepInfo> steps;
  // By step that is a call (onnx::call_number): the programs of its bodies.
  std::map<size_t, std::vector<std::shared_ptr<const BodyPrograms>>> bodies;
  // The programs of the whole graph for the sizes of a run, where none serves all sizes. Then the
  // plan has no steps, and `steps` one that stands for the graph.
  std::unique_ptr<BodyPrograms> by_sizes;
  std::unique_ptr<OverridingPrograms> overriding;
  // By step: the positions that are checked before it runs on the CPU.
  std::vector<std::vector<cpu::PositionGuard>> guards;
  // Checks that depend on inputs alone, on every device.
  std::vector<cpu::PositionGuard> input_guards;
  std::vector<fuse::Append> appends;
  // By symbol number; empty where no value's shape has the symbol.
  std::vector<std::string> symbol_names;
  // By ValueId: the symbols in the value's shape.
  std::vector<std::vector<int64_t>> shape_symbols;
  // By symbol: whether its value comes from the parts before, with the inputs. Empty where none is.
  std::vector<bool> outer_symbols;
  // For a GPU.
  ProgramParts parts;

  const ir::Graph& graph() const { return *plan.graph; }
};

}  // namespace redfuser::runtime
