// A GPU program for one set of sizes at a time: every call with its arguments.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/evaluate.h"
#include "redfuser/error.h"
#include "runtime/gpu/bound/memory_plan.h"
#include "runtime/gpu/bound/program.h"
#include "runtime/gpu/bound/recording.h"
#include "runtime/gpu/bound/step_order.h"

namespace redfuser::runtime {

// Where values lie that are not the session's own: by the value that owns the bytes.
using Addresses = std::map<ir::ValueId, cuda::DevicePointer>;

// A call of a step that the driver refused: `family` of its kernel, or "library".
struct StepFailure : InternalError {
  StepFailure(size_t number, std::string name, std::exception_ptr cause, const std::string& text)
      : InternalError(text), step(number), family(std::move(name)), error(std::move(cause)) {}
  size_t step;
  std::string family;
  std::exception_ptr error;
};

// The calls of a run, ready to be enqueued, in memory for the greatest of some runs.
class BoundProgram {
 public:
  // `layout` is the plan of the same steps, for these symbols or greater ones; `addresses` has the
  // values outside of the arena, `counter` the counters of launches.
  BoundProgram(const GpuProgram& program, LoadedSteps steps, MemoryPlan layout,
               std::vector<int64_t> symbols, cuda::DevicePointer arena, cuda::DevicePointer counter,
               Addresses addresses = {});

  // Calls with all their arguments.
  struct Launch {
    cuda::FunctionHandle function;
    cuda::LaunchShape shape;
    std::vector<cuda::TensorMap> maps;
    std::vector<uint64_t> arguments;
    std::string name, family;
    bool early = false;  // whether it may start while the call before it still runs

    cuda::KernelCall call() const { return {function, shape, maps, arguments}; }
  };
  using Call = std::variant<Launch, cuda::ProductLibrary::Prepared>;
  using Calls = std::vector<Call>;
  // `early`: a kernel that can start while the call before it still runs may do so.
  static void enqueue(const Call& call, const cuda::Stream& stream, cuda::DevicePointer workspace,
                      bool early = false);
  static void enqueue(const Calls& calls, const cuda::Stream& stream,
                      cuda::DevicePointer workspace);
  // The kernel's name, or "cublaslt".
  static std::string name_of(const Call& call);
  // Those of a step in another form, on this shape's values, with scratch buffers of its own from
  // `scratch` on.
  Calls calls_of(const LoadedStep& form, size_t step, cuda::DevicePointer scratch) const;
  int64_t scratch_bytes(const codegen::GpuStep& form) const;
  // Bytes of a value's memory; of a value elsewhere, those of this run.
  int64_t room_of(ir::ValueId value) const;

  // Makes the calls that other symbols, or other addresses of the same values, change. False, and
  // nothing is done, where the memory does not hold such a run.
  bool rebind(const std::vector<int64_t>& symbols, const Addresses& addresses);
  // The same for a run that is expected, and in the graph as well.
  void foresee(const std::vector<int64_t>& symbols, const Addresses& addresses);

  // Computes a step by another form, whose scratch buffers lie in `scratch`; drops the CUDA graph.
  void replace(size_t step, std::shared_ptr<const LoadedStep> form, cuda::Buffer scratch);

  // What the calls of a step read and write in any run that the memory holds, `workspace` and the
  // counters among it.
  StepMemory memory(size_t step, cuda::DevicePointer workspace) const;

  // Enqueues the calls of a step, with `then` after each. Throws StepFailure where one is refused.
  // `early` as above, for the first call; the others may start early where a kernel of ours is
  // before them.
  using CallVisitor = std::function<void(const Call&)>;
  void enqueue(size_t step, const cuda::Stream& stream, cuda::DevicePointer workspace,
               bool early = false, const CallVisitor& then = nullptr) const;
  // Whether the last call of a step is a kernel of ours.
  bool ends_with_kernel(size_t step) const;
  size_t steps() const { return calls_.size(); }
  const Calls& calls(size_t step) const { return calls_[step]; }
  int launches() const;
  const std::shared_ptr<const LoadedStep>& loaded(size_t step) const { return steps_[step]; }
  const LoadedSteps& loaded() const { return steps_; }
  const std::vector<int64_t>& symbols() const { return symbols_; }
  Dims dims(ir::ValueId value) const;
  // The address of a value.
  cuda::DevicePointer address(ir::ValueId value) const;
  // Where the kernels of a step leave the size that they find.
  cuda::DevicePointer found_at(size_t step) const {
    return places_of(step).at(static_cast<size_t>(steps_[step]->form.found->scratch));
  }
  // Pairs of values outside of the arena that have bytes in common.
  std::vector<std::pair<ir::ValueId, ir::ValueId>> overlaps() const;

  // State of the session for the shape: runs, the calls in a CUDA graph, and tunings.
  int runs = 0;
  Recording recording;
  std::vector<StepTuning> tunings;

 private:
  // Where a step's scratch buffers lie.
  using Places = std::vector<cuda::DevicePointer>;
  cuda::DevicePointer resolve(const codegen::BufferRef& buffer, const Places& scratch) const;
  cuda::TensorMap encode(const codegen::TmaView& view, const Places& scratch,
                         const std::string& name) const;
  std::optional<Call> make(const codegen::KernelLaunch& launch, cuda::FunctionHandle function,
                           size_t step, const Places& scratch) const;
  std::optional<Call> make(const codegen::ProductCall& call, size_t step,
                           const Places& scratch) const;
  Calls make_calls(const LoadedStep& form, size_t step, const Places& scratch) const;
  Places places_of(size_t step) const;
  // Of these steps; none where it throws.
  void make_calls(const std::vector<size_t>& steps);
  void find_dependences();
  int64_t size(ir::Expr expr) const;
  int64_t size(ir::Expr expr, int64_t otherwise) const {
    return expr == nullptr ? otherwise : size(expr);
  }

  const GpuProgram& program_;
  LoadedSteps steps_;
  MemoryPlan layout_;
  std::vector<int64_t> symbols_;
  // Sizes that were evaluated, while calls of all steps are made: many steps have the same ones.
  using KnownSizes = std::unordered_map<ir::Expr, int64_t>;
  KnownSizes* known_sizes_ = nullptr;
  cuda::DevicePointer arena_, counter_;
  Addresses addresses_;
  std::vector<Calls> calls_;
  // By step, since the first rebind(): the symbols of its sizes, and the values elsewhere that its
  // calls touch.
  struct Dependences {
    std::vector<int64_t> symbols;
    std::vector<ir::ValueId> elsewhere;
  };
  std::vector<Dependences> dependences_;
  std::map<size_t, cuda::Buffer> replaced_;  // scratch buffers of replaced steps
};

}  // namespace redfuser::runtime
