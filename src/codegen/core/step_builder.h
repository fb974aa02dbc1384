// The device form of one step in the making: its calls, scratch buffers and flat expressions.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/emitter.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/linear_reads.h"

namespace redfuser::codegen {

// Who computes a matrix product: the library or a kernel of ours, by estimate where it is open.
enum class ProductFamily { ByEstimate, Library, Kernel };

class StepBuilder {
 public:
  StepBuilder(const ir::Graph& graph, const fuse::Step& step, const Target& target)
      : graph(graph), step(step), target(target), flat(graph) {
    result.pool = graph.pool;
  }

  ir::ExprPool& pool() const { return *graph.pool; }
  const std::vector<ir::Expr>& shape(int64_t value) const {
    return graph.values[static_cast<size_t>(value)].shape;
  }
  DType dtype_of(int64_t value) const;
  // A scratch buffer; its number as a value of Reads.
  int64_t add_scratch(DType dtype, ir::Expr elements);
  KernelText kernel() const { return KernelText(graph, step, scratch_dtypes); }
  BufferRef buffer(int64_t value) const;
  // Throws UserError about this step.
  [[noreturn]] void fail(const std::string& message) const;

  const ir::Graph& graph;
  const fuse::Step& step;
  const Target& target;
  LinearReads flat;
  std::vector<DType> scratch_dtypes;
  ProductFamily product_family = ProductFamily::ByEstimate;
  KnownSizes sizes;  // that estimates are for
  GpuStep result;
};

// One output of an elementwise kernel: value[offset] = body, both over the kernel's axes.
struct Store {
  int64_t value;
  ir::Expr body;    // flat
  ir::Expr offset;  // Int64
};

// Adds a kernel that computes the stores at every point of the axes. `name` is the family's.
void add_map(StepBuilder& builder, const std::string& name, std::vector<ir::Expr> axes,
             std::vector<Store> stores, const std::string& comment);

// Size products that must be multiples of `unit` for the offset to be one, whatever its axes.
std::vector<ir::Expr> offset_units(ir::ExprPool& pool, ir::Expr offset);

// Declares the coordinates of `axes` from the linear `index` (row-major).
void bind_coordinates(Emitter& emitter, const std::vector<ir::Expr>& axes,
                      const std::string& index);

void generate_map(StepBuilder& builder, const fuse::MapStep& step);
void generate_reduce(StepBuilder& builder, const fuse::ReduceStep& step);
void generate_product(StepBuilder& builder, const fuse::ProductStep& step);
// By one of its choices.
void generate_product(StepBuilder& builder, const fuse::ProductStep& step,
                      const KernelConfig& choice);
std::vector<Candidate> product_configs(const ir::Graph& graph, const fuse::Step& step,
                                       const Target& target, const KnownSizes& sizes);
void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step);
// By one of its choices.
void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step,
                      const KernelConfig& choice);
std::vector<Candidate> cascade_configs(StepBuilder& builder, const fuse::CascadeStep& step);
void generate_opaque(StepBuilder& builder, const fuse::OpaqueStep& step);

// c = Σ a·b by the product library. Operands that it cannot address are copied first; `result` is
// over Leaf Product 0 and the axes. `value` is a graph value.
void add_product(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                 const std::string& comment);
// The same for flat expressions, into a value or scratch buffer at `offset` over the axes.
void add_product_at(StepBuilder& builder, const fuse::ProductStep& product, int64_t value,
                    ir::Expr offset, const std::string& comment);

}  // namespace redfuser::codegen
