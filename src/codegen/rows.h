// Row cascades: one row's reductions and outputs by a warp, a block or a cluster.
#pragma once

#include <set>
#include <vector>

#include "codegen/step_builder.h"

namespace redfuser {

// A streaming form ready for a row kernel: flat reads; columns have become row axes, so that a row
// has scalar state only.
struct RowForm {
  std::vector<Expr> rows;
  Expr stream = nullptr;
  std::vector<Accumulator> accumulators;
  std::vector<Reference> references;
  std::vector<Expr> finish;
  std::vector<Stage> stages;
  struct Output {
    int64_t value;
    Expr body, offset;
    std::vector<Expr> extra;  // axes beside rows and stream: ranks
    bool maps_back;
  };
  std::vector<Output> outputs;
  std::string comment;

  Expr length() const { return stream->extent(); }
  // Every expression evaluated at a streamed element, by phase: those of accumulators, then
  // outputs.
  std::vector<Expr> streamed() const;
};
RowForm row_form(StepBuilder& builder, const CascadeStep& step);

// The accumulators [begin, end) that one pass over the row reduces.
struct Phase {
  size_t begin, end;
};
std::vector<Phase> phases_of(const RowForm& form);

// What is kept of each element between passes: expressions of reads that two passes need.
std::vector<Expr> shared_values(const RowForm& form, const std::vector<Phase>& phases);

struct RowConfig {
  int lanes = 256;    // threads that share a row in a block: 32, or the whole block
  int threads = 256;  // of a block
  int width = 4;      // consecutive elements of a thread
  int chunks = 1;     // groups of `width` per thread that are kept; 0: passes read the row again
  int cluster = 1;    // blocks that share a row
};

// The kernel for rows up to lanes · chunks · width · cluster elements (any length if chunks is 0).
KernelLaunch row_kernel(StepBuilder& builder, const RowForm& form, const RowConfig& config);

// Elements of a 16-byte access for the streamed reads and outputs of the form.
int row_width(const StepBuilder& builder, const RowForm& form);

}  // namespace redfuser
