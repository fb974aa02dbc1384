// The configurations of products whose depth the blocks of a cluster divide
// (src/device/product/cluster_product.cuh), with their estimated times.
#pragma once

#include <optional>
#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/core/step_builder.h"
#include "codegen/matrix/epilogue_work.h"

namespace redfuser::codegen {

inline constexpr const char* kClusterProductFamily = "product_cluster";

struct ClusterForm {
  const std::vector<ProductCall>* calls = nullptr;  // of one left-hand side
  bool by_rows = false;        // the columns are contiguous along the contracted axis
  bool rows_by_terms = false;  // the rows are not: of floats alone
  bool given = false;          // the right-hand sides alone are constants or inputs of the graph
  EpilogueWork epilogue;

  const ProductCall& call() const { return calls->front(); }
  int products() const { return static_cast<int>(calls->size()); }
  // Whether the operands are 8-bit floats.
  bool has_codes() const { return size_of(call().dtype) == 1; }
  // Whether they are floats, which are two parts each for TF32 tensor cores.
  bool has_parts() const { return size_of(call().dtype) == 4; }
};

// nullopt unless the operands are matrices of floats of 16 or (unless products are to be exact) 32
// bits, or of E4M3FN that are contiguous along the contracted axis, of known depth and columns, on
// sm_90. `calls` has
// an entry per product, as product_kernel, and outlives the form.
std::optional<ClusterForm> cluster_form(const ir::Graph& graph, const Target& target,
                                        const std::vector<ProductCall>& calls);

struct ClusterConfig {
  // As in src/device/product/cluster_tile.cuh: stages of a ring, and its KiB where blocks share a
  // multiprocessor's memory and where one has it.
  static constexpr int kMostStages = 8, kSharedRing = 108, kWholeRing = 216;

  int rows = 64;     // of a tile, 64 or 128
  int lines = 64;    // of them that exist at most
  int columns = 64;  // of each product
  int blocks = 1;    // of a cluster, which divide the contracted axis
  int resident = 1;  // blocks that share a multiprocessor's memory

  Parameters parameters() const {
    return {{"rows", rows},
            {"lines", lines},
            {"columns", columns},
            {"blocks", blocks},
            {"resident", resident}};
  }
  static ClusterConfig of(const KernelConfig& choice);
};

// Where one kernel computes the product: it has at most `most` rows, and more than the kernels of
// fewer rows.
struct ClusterClass {
  int64_t most;
  ir::Expr when;  // a bool over sizes
};
std::vector<ClusterClass> cluster_classes(ir::ExprPool& pool, const ClusterForm& form);

// All configurations that fit, for `rows` rows, the fastest by estimate first.
std::vector<Candidate> cluster_choices(const ClusterForm& form, int64_t rows,
                                       const KnownSizes& sizes, const Target& target);

}  // namespace redfuser::codegen
