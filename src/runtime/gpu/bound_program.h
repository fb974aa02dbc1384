// A GPU program for one set of sizes: where every value lies, and every call with its arguments.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/gpu/arena.h"
#include "runtime/gpu/program.h"

namespace redfuser::runtime {

// Where values lie that are not the session's own: by the value that owns the bytes.
using Addresses = std::map<ir::ValueId, cuda::DevicePointer>;

// Sizes evaluated, memory planned, nothing allocated.
class CudaLayout {
 public:
  // Inputs and outputs stay to the end, and every value if `keep_all`; `elsewhere` takes no room.
  // Throws UserError for a size that no input binds.
  CudaLayout(const CudaProgram& program, const LoadedSteps& steps,
             const std::vector<int64_t>& symbols, bool keep_all,
             const std::set<ir::ValueId>& elsewhere = {});

  int64_t bytes() const { return arena_.bytes; }
  const Dims& dims(ir::ValueId value) const { return dims_.at(value); }
  // The value that owns the bytes of `value`: itself, unless it is an alias.
  ir::ValueId root(ir::ValueId value) const;
  // The value's place in the arena; nothing for one that is a constant.
  std::optional<int64_t> offset(ir::ValueId value) const;
  int64_t scratch_offset(size_t step, int scratch) const;

 private:
  void define(ir::ValueId value, const std::vector<int64_t>& symbols);
  void add_storage(ir::ValueId value, int step);
  void make_room(ir::ValueId value, ir::ValueId owner);

  const CudaProgram& program_;
  const std::set<ir::ValueId> elsewhere_;
  std::map<ir::ValueId, Dims> dims_;
  std::map<ir::ValueId, ir::ValueId> roots_;  // of aliases: the value that owns the bytes
  std::map<ir::ValueId, size_t> storages_;
  std::vector<BufferLife> lives_;
  std::vector<int64_t> starts_;               // within the buffers
  std::vector<std::vector<size_t>> scratch_;  // by step
  Arena arena_;
};

// The calls of one shape, ready to be enqueued.
class CudaShape {
 public:
  // `addresses` has what the layout, which is of the same steps, leaves to lie elsewhere; `counter`
  // is for launches with one.
  CudaShape(const CudaProgram& program, LoadedSteps steps, CudaLayout layout,
            std::vector<int64_t> symbols, cuda::DevicePointer arena, cuda::DevicePointer counter,
            Addresses addresses = {});

  // Calls with all their arguments.
  struct Launch {
    cuda::FunctionHandle function;
    cuda::LaunchShape shape;
    std::vector<cuda::TensorMap> maps;
    std::vector<uint64_t> arguments;
    std::string name;
  };
  using Call = std::variant<Launch, cuda::ProductLibrary::Prepared>;
  using Calls = std::vector<Call>;
  static void enqueue(const Calls& calls, const cuda::Stream& stream,
                      cuda::DevicePointer workspace);
  // Those of a step in another form, on this shape's values, with scratch buffers of its own from
  // `scratch` on.
  Calls calls_of(const LoadedStep& form, size_t step, cuda::DevicePointer scratch) const;
  int64_t scratch_bytes(const codegen::DeviceStep& form) const;

  // Moves what lies elsewhere; forgets the graph if an address changes.
  void move(const Addresses& addresses);

  // Enqueues the calls of a step.
  void enqueue(size_t step, const cuda::Stream& stream, cuda::DevicePointer workspace) const;
  size_t steps() const { return calls_.size(); }
  int launches() const;
  const CudaLayout& layout() const { return layout_; }
  // Where a value lies.
  cuda::DevicePointer address(ir::ValueId value) const;

  // Kept by the session with the shape: runs with these addresses, attempts to record them, and
  // what tuning found.
  int runs = 0, recordings = 0;
  cuda::Graph graph;
  std::vector<StepTuning> tunings;

 private:
  // Where a step's scratch buffers lie.
  using Places = std::vector<cuda::DevicePointer>;
  cuda::DevicePointer resolve(const codegen::BufferRef& buffer, const Places& scratch) const;
  cuda::TensorMap encode(const codegen::TensorView& view, const Places& scratch,
                         const std::string& name) const;
  std::optional<Call> make(const codegen::KernelLaunch& launch, cuda::FunctionHandle function,
                           size_t step, const Places& scratch) const;
  std::optional<Call> make(const codegen::ProductCall& call, size_t step,
                           const Places& scratch) const;
  Calls make_calls(const LoadedStep& form, size_t step, const Places& scratch) const;
  void make_calls(size_t step);
  bool touches(size_t step, const std::set<ir::ValueId>& moved) const;
  int64_t size(ir::Expr expr) const { return evaluate_size(expr, symbols_); }
  int64_t size(ir::Expr expr, int64_t otherwise) const {
    return expr == nullptr ? otherwise : size(expr);
  }

  const CudaProgram& program_;
  LoadedSteps steps_;
  CudaLayout layout_;
  std::vector<int64_t> symbols_;
  cuda::DevicePointer arena_, counter_;
  Addresses addresses_;
  std::vector<Calls> calls_;
};

}  // namespace redfuser::runtime
