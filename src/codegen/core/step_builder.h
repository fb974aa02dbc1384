// Builds the GPU implementation of one step: its calls, scratch buffers and flat expressions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/core/emitter.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/linear_reads.h"

namespace redfuser::codegen {

// The implementation of a matrix product: the library, a kernel of src/device/product (product.cuh,
// thin_product.cuh, cluster_product.cuh), the fastest of them by estimate, or Plain, a sum for each
// element.
enum class ProductFamily { ByEstimate, Library, Kernel, Thin, Cluster, Plain };

class StepBuilder {
 public:
  StepBuilder(const ir::Graph& graph, const fuse::Step& step, const Target& target)
      : graph(graph), step(step), target(target), flat(graph, target) {
    result.pool = graph.pool;
  }

  ir::ExprPool& pool() const { return *graph.pool; }
  const std::vector<ir::Expr>& shape(int64_t value) const {
    return graph.values[static_cast<size_t>(value)].shape;
  }
  DType dtype_of(int64_t value) const;
  // The offset of an element of a value of the graph, and a value's dimensions as they are in
  // memory.
  ir::Expr offset_of(int64_t value, const std::vector<ir::Expr>& point) const {
    return flat.offset_of(value, point);
  }
  std::vector<ir::Expr> memory_axes(int64_t value, const std::vector<ir::Expr>& axes) const {
    return in_memory(axes, target.order_of(value));
  }
  // Adds a scratch buffer; returns its value number for Reads.
  int64_t add_scratch(DType dtype, ir::Expr elements);
  KernelText kernel() const { return {graph, step, scratch_dtypes, target}; }
  BufferRef buffer(int64_t value) const;
  // Throws UserError about this step.
  [[noreturn]] void fail(const std::string& message) const;
  // The same where nothing computes it, with what was left out.
  [[noreturn]] void fail_without_kernel() const;
  // One of the same step, target, sizes and families, to see what it would make.
  StepBuilder trial() const;
  // The family of configurations or kernels is left out.
  bool leaves_out(const std::string& family) const {
    return result.left_out.families.count(family) > 0;
  }
  bool leaves_out_offer(const std::string& name) const {
    return result.left_out.offers.count(name) > 0;
  }

  const ir::Graph& graph;
  const fuse::Step& step;
  const Target& target;
  LinearReads flat;
  std::vector<DType> scratch_dtypes;
  ProductFamily product_family = ProductFamily::ByEstimate;
  std::optional<KernelConfig> product_config;  // of that family; else the fastest by estimate
  std::vector<Candidate> product_choices;      // of which that was chosen
  bool pads_operands = false;  // of products: operands without rows of whole vectors are copied
  KnownSizes sizes;            // for estimates
  GpuStep result;
};

}  // namespace redfuser::codegen
