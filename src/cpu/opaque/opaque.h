// CPU kernels of operators without a lowering. One function per operator, found by name in the
// table of opaque_table.cpp. It reads its inputs and attributes from an OpaqueCall, computes the
// output sizes from the tensors at hand, and sets the outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/memory_budget.h"
#include "cpu/prepared.h"
#include "cpu/step.h"
#include "ops/op_def.h"

namespace redfuser::cpu {

// One run of one node. NodeView has its attributes.
class OpaqueCall : public ops::NodeView {
 public:
  OpaqueCall(RunContext& context, const ir::Node& node, Prepared& prepared)
      : ops::NodeView(context.graph, node), context_(context), prepared_(prepared) {}

  // The result of make() in the node's first run; make() may use attributes and constant inputs,
  // not others. A kernel has one such value.
  template <typename T, typename Make>
  const T& prepared(const Make& make) const {
    const std::lock_guard lock(prepared_.mutex);
    if (prepared_.value == nullptr) prepared_.value = std::make_shared<const T>(make());
    return *static_cast<const T*>(prepared_.value.get());
  }

  RunContext& context() const { return context_; }
  // Input `input` is the same in every run.
  bool is_constant(int input) const {
    return graph().values[static_cast<size_t>(node().inputs[input])].is_constant();
  }
  ThreadPool& threads() const { return context_.pool; }
  const Tensor& tensor(int input) const;  // InternalError unless present and computed
  const Dims& dims(int input) const { return tensor(input).dims(); }
  // Input `input` as float32 (Float16 and BFloat16 converted, others as they are).
  Tensor widened(int input) const;
  // The elements of a small input of any integer or floating dtype.
  std::vector<int64_t> integers_of(int input) const;
  ChargedVector<double> reals_of(int input) const;
  // The same for an input of one element; UserError for any other number of them.
  int64_t integer_of(int input) const;
  double real_of(int input) const;

  // Allocates output `output` with the graph's dtype and binds symbols of its shape. The output
  // must be present (NodeView::has_output).
  Tensor& allocate(int output, Dims dims) const;
  // Defines output `output`, narrowing float32 to Float16 or BFloat16 if the graph has that type.
  void set(int output, Tensor tensor) const;

 private:
  void require_one(int input) const;

  RunContext& context_;
  Prepared& prepared_;
};

using OpaqueFunction = void (*)(OpaqueCall&);

// What a call with inputs and a first output of these sizes takes: microseconds of one thread, and
// bytes of values in between.
struct OpaqueCost {
  double time;
  int64_t bytes;
};
using OpaqueCostFunction = OpaqueCost (*)(const ops::NodeView& view, std::span<const Dims> inputs,
                                          const Dims& output);

// UserError for an operator without a kernel.
std::unique_ptr<Kernel> make_opaque_kernel(const ir::Graph& graph, const fuse::OpaqueStep& step);

// UserError if the calling thread's memory limit leaves no room for `count` elements of `width`
// bytes.
void require_memory(int64_t count, size_t width);

// Uninitialised working memory of `count` elements. For initialised memory that grows with a tensor
// use ChargedVector.
template <typename T>
struct FreeScratch {
  void operator()(T* memory) { allocator.deallocate(memory, count); }
  ChargedAllocator<T> allocator;
  size_t count = 0;
};
template <typename T>
using ScratchArray = std::unique_ptr<T[], FreeScratch<T>>;
template <typename T>
ScratchArray<T> scratch(int64_t count) {
  static_assert(std::is_trivially_default_constructible_v<T>);
  FreeScratch<T> free;
  free.count = static_cast<size_t>(count);
  T* memory = free.allocator.allocate(free.count);
  return ScratchArray<T>(memory, std::move(free));
}

// Element type conversion between floating dtypes, in parallel.
Tensor convert_float(const Tensor& tensor, DType dtype, ThreadPool& pool);

// Splits [0, count) into ranges of at least `grain` and runs body(begin, end) on each.
void parallel_ranges(ThreadPool& pool, int64_t count, int64_t grain,
                     const std::function<void(int64_t begin, int64_t end)>& body);

// A row-major view of dims as outer × axis × inner around dimension `axis`.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView around_axis(const Dims& dims, int axis);

// The row-major strides of `dims`, in elements.
std::vector<int64_t> strides_of(const Dims& dims);

}  // namespace redfuser::cpu
