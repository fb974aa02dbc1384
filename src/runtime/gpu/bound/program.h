// A compiled program's GPU side: device steps, kernels and constants. Immutable; sessions share it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "codegen/core/gpu_step.h"
#include "codegen/joined/joined_steps.h"
#include "cuda/cublaslt.h"
#include "cuda/driver.h"
#include "runtime/load/host_part.h"
#include "runtime/load/loaded_step.h"
#include "runtime/load/upload.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

class GpuProgram {
 public:
  // Opens the GPU, generates and compiles every step and uploads the constants that steps read. A
  // kernel that does not compile or load is replaced by the next offer of its step, with a note.
  // Steps without a kernel are left to the CPU, with a note. Throws UserError for a missing GPU or
  // library.
  GpuProgram(std::shared_ptr<const CompiledProgram> program, const SessionOptions& options);

  const CompiledProgram& compiled() const { return *program_; }
  const ir::Graph& graph() const { return program_->graph(); }
  const cuda::DevicePtr& device() const { return device_; }
  // The product library is opened for programs with products only.
  bool has_products() const { return products_ != nullptr; }
  const cuda::ProductLibrary& products() const { return *products_; }
  bool tf32() const { return tf32_; }
  // The target of the generated text.
  const codegen::Target& target() const { return target_; }
  // The sizes of a value's memory in a run with these symbols: greater ones where it has room.
  Dims memory_dims(ir::ValueId value, const std::vector<int64_t>& symbols) const;
  // The same symbols, with the most that steps may find of sizes that are not known.
  std::vector<int64_t> with_most(std::vector<int64_t> symbols) const;
  // An AliasStep, a step of the host, and one that another one computes have no calls.
  const LoadedSteps& steps() const { return steps_; }
  const codegen::JoinedSteps& joined() const { return joined_; }
  const HostPart& host() const { return host_; }
  // Whether a product, a cascade or an operator of known sizes has kernels.
  bool has_large_steps() const;
  // Whether a step on the GPU writes the output, or the value that it is an alias of.
  bool produces(ir::ValueId output) const { return produced_.count(output) > 0; }
  bool has_constant(ir::ValueId value) const {
    return graph().values[static_cast<size_t>(value)].is_constant();
  }
  // A constant that no step read at first, but what takes the place of a kernel does, is uploaded
  // at the first call.
  cuda::DevicePointer constant(ir::ValueId value) const;
  int64_t constant_bytes() const { return constant_memory_.bytes(); }
  // UserError if the constants take more than `memory_limit` bytes; 0: no limit.
  void check_limit(int64_t memory_limit) const;
  // Of loading kernels.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::vector<codegen::GpuStep> generate_steps();
  std::vector<codegen::GpuStep> generate_steps(const ir::Graph& own);
  std::set<size_t> steps_of_host() const;
  // With the steps that the host has so far.
  void place_values();
  void find_produced_outputs();
  void load_steps(std::vector<codegen::GpuStep> forms, const SessionOptions& options);
  // Assigns offsets to the constants that steps read, in order, and allocates their memory.
  std::vector<Placed> place_constants(const std::vector<codegen::GpuStep>& forms,
                                      int64_t memory_limit);

  std::shared_ptr<const CompiledProgram> program_;
  HostPart host_;
  cuda::DevicePtr device_;
  bool tf32_ = false;
  codegen::Target target_;
  codegen::JoinedSteps joined_;
  std::unique_ptr<cuda::ProductLibrary> products_;
  LoadedSteps steps_;
  cuda::Buffer constant_memory_;
  std::set<ir::ValueId> produced_;
  std::map<ir::ValueId, int64_t> constants_;  // offset in constant_memory_
  mutable std::mutex late_mutex_;
  mutable std::map<ir::ValueId, cuda::Buffer> late_constants_;
  std::vector<std::string> notes_;
};

// The machine that estimates are for: the driver's numbers, and the table's where it has none.
select::Machine machine_of(const cuda::DeviceInfo& info);

// Visits every buffer of the step's calls, undefined ones too.
void visit_buffers(const codegen::GpuStep& step,
                   const std::function<void(const codegen::BufferRef&)>& visit);

// The GPU side of a program, made at the first call. Sessions with the same kernel and cache
// options share it while one of them exists. `threads` applies to its construction; the memory
// limit applies to each session.
std::shared_ptr<const GpuProgram> cuda_program(std::shared_ptr<const CompiledProgram> program,
                                               const SessionOptions& options);

}  // namespace redfuser::runtime
