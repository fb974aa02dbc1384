// A GPU program for one set of sizes: where every value lies, and every call with its arguments.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "runtime/cuda_arena.h"
#include "runtime/cuda_program.h"

namespace redfuser {

// Where values lie that are not the session's own: by the value that owns the bytes.
using Addresses = std::map<ValueId, cuda::DevicePointer>;

// Sizes evaluated, memory planned, nothing allocated.
class CudaLayout {
 public:
  // Inputs and outputs stay to the end, and every value if `keep_all`; `elsewhere` takes no room.
  // Throws UserError for a size that no input binds.
  CudaLayout(const CudaProgram& program, const std::vector<int64_t>& symbols, bool keep_all,
             const std::set<ValueId>& elsewhere = {});

  int64_t bytes() const { return arena_.bytes; }
  const Dims& dims(ValueId value) const { return dims_.at(value); }
  // The value that owns the bytes of `value`: itself, unless it is an alias.
  ValueId root(ValueId value) const;
  // The value's place in the arena; nothing for one that is a constant.
  std::optional<int64_t> offset(ValueId value) const;
  int64_t scratch_offset(size_t step, int scratch) const;

 private:
  void define(ValueId value, const std::vector<int64_t>& symbols);
  void add_storage(ValueId value, int step);
  void make_room(ValueId value, ValueId owner);

  const CudaProgram& program_;
  const std::set<ValueId> elsewhere_;
  std::map<ValueId, Dims> dims_;
  std::map<ValueId, ValueId> roots_;  // of aliases: the value that owns the bytes
  std::map<ValueId, size_t> storages_;
  std::vector<BufferLife> lives_;
  std::vector<int64_t> starts_;               // within the buffers
  std::vector<std::vector<size_t>> scratch_;  // by step
  Arena arena_;
};

// The calls of one shape, ready to be enqueued.
class CudaShape {
 public:
  // `addresses` has what the layout leaves to lie elsewhere; `counter` is for launches with one.
  CudaShape(const CudaProgram& program, CudaLayout layout, std::vector<int64_t> symbols,
            cuda::DevicePointer arena, cuda::DevicePointer counter, Addresses addresses = {});

  // Moves what lies elsewhere; forgets the graph if an address changes.
  void move(const Addresses& addresses);

  // Enqueues the calls of a step.
  void enqueue(size_t step, const cuda::Stream& stream, cuda::DevicePointer workspace) const;
  size_t steps() const { return calls_.size(); }
  int launches() const;
  const CudaLayout& layout() const { return layout_; }
  // Where a value lies.
  cuda::DevicePointer address(ValueId value) const;

  // Kept by the session with the shape: runs with these addresses.
  int runs = 0;
  cuda::Graph graph;

 private:
  struct Launch {
    cuda::FunctionHandle function;
    cuda::LaunchShape shape;
    std::vector<cuda::TensorMap> maps;
    std::vector<uint64_t> arguments;
    std::string name;
  };
  using Call = std::variant<Launch, cuda::ProductLibrary::Prepared>;

  cuda::DevicePointer resolve(const BufferRef& buffer, size_t step) const;
  cuda::TensorMap encode(const TensorView& view, size_t step, const std::string& name) const;
  std::optional<Call> make(const KernelLaunch& launch, size_t step) const;
  std::optional<Call> make(const ProductCall& call, size_t step) const;
  void make_calls(size_t step);
  bool touches(size_t step, const std::set<ValueId>& moved) const;
  int64_t size(Expr expr) const { return evaluate_size(expr, symbols_); }
  int64_t size(Expr expr, int64_t otherwise) const {
    return expr == nullptr ? otherwise : size(expr);
  }

  const CudaProgram& program_;
  CudaLayout layout_;
  std::vector<int64_t> symbols_;
  cuda::DevicePointer arena_, counter_;
  Addresses addresses_;
  std::vector<std::vector<Call>> calls_;
};

}  // namespace redfuser
