// A cascade as row kernels and attention kernels take it: flat reads, outputs at linear offsets.
#pragma once

#include <set>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// A streaming form ready for a row kernel: flat reads; columns have become row axes, so that a row
// has scalar state only.
struct FlatStreaming : cascade::Streaming {
  struct Output {
    int64_t value;
    ir::Expr body, offset;
    std::vector<ir::Expr> extra;  // axes beside rows and stream: ranks
    bool maps_back;
  };
  std::vector<Output> outputs;  // in place of the cascade's
  std::string comment;

  ir::Expr length() const { return cascade.stream->extent(); }
  // Every expression evaluated at a streamed element, by phase: those of accumulators, then
  // outputs.
  std::vector<ir::Expr> streamed() const;
};
FlatStreaming flat_streaming(StepBuilder& builder, const fuse::CascadeStep& step);

// Some output has an element for every one of the row.
bool maps_back(const FlatStreaming& form);

// The accumulators [begin, end) that one pass over the row reduces.
struct Phase {
  size_t begin, end;
};
std::vector<Phase> phases_of(const FlatStreaming& form);

// What is kept of each element between passes: expressions of reads that two passes need.
std::vector<ir::Expr> shared_values(const FlatStreaming& form, const std::vector<Phase>& phases);

// The state of an accumulator stands in an expression (null: it does not).
bool uses_state(ir::Expr e, size_t accumulator);

// Outputs that are one per row, written by `lanes` threads of which this one is `lane`.
void write_row_outputs(Emitter& emitter, KernelText& kernel, const FlatStreaming& form, int lanes);

// Every reduction keeps one number (or its place) per row, and no element needs a contraction.
bool folds(const FlatStreaming& form);
// Every result is rounded to 16 bits, and no step before amplifies a last bit: approximations that
// are right to 22 bits do.
bool rounds_smoothly(const StepBuilder& builder, const FlatStreaming& form);
// A state needs the number of elements folded into it.
bool counts(const FlatStreaming& form);
// Bytes of a state in memory.
int64_t state_bytes(const FlatStreaming& form);
// Bytes of an element of the row that a fold reads.
int folded_bytes(const StepBuilder& builder, const FlatStreaming& form);

// Elements of a 16-byte access for the streamed reads and outputs of the form.
int row_width(const StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
