// The input of row and attention kernels: a cascade with flat reads and linear output offsets.
#pragma once

#include <set>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// A streaming form for a row kernel: reads are flat, and column axes are row axes, so the state of
// a row consists of scalars.
struct FlatStreaming : cascade::Streaming {
  struct Output {
    int64_t value;
    ir::Expr body, offset;
    std::vector<ir::Expr> extra;  // axes beside rows and stream: ranks
    bool maps_back;
  };
  std::vector<Output> outputs;  // replace the cascade's
  std::string comment;

  ir::Expr length() const { return cascade.stream->extent(); }
  // All expressions evaluated per streamed element: lifts in the order of phases, then outputs.
  std::vector<ir::Expr> streamed() const;
};
FlatStreaming flat_streaming(StepBuilder& builder, const fuse::CascadeStep& step);

// Whether some output has an element per streamed element.
bool maps_back(const FlatStreaming& form);

// The accumulators [begin, end) that one pass over the row reduces.
struct Phase {
  size_t begin, end;
};
std::vector<Phase> phases_of(const FlatStreaming& form);

// Values of an element that are kept between passes: expressions of reads that two passes need.
std::vector<ir::Expr> shared_values(const FlatStreaming& form, const std::vector<Phase>& phases);

// Whether an expression has the state of an accumulator (null: false).
bool uses_state(ir::Expr e, size_t accumulator);

// Writes the outputs with one element per row, by `Lanes` threads of which this one is `lane`.
void write_row_outputs(Emitter& emitter, KernelText& kernel, const FlatStreaming& form);

// Whether every reduction keeps one number (or position) per row, and no element has a contraction.
bool folds(const FlatStreaming& form);
// Whether every result is rounded to 16 bits and no operation before amplifies the last bit, so
// functions with 22 correct bits suffice.
bool rounds_smoothly(const StepBuilder& builder, const FlatStreaming& form);
// Whether a state needs the number of elements folded into it.
bool counts(const FlatStreaming& form);
// Bytes of a state in memory.
int64_t state_bytes(const FlatStreaming& form);
// Bytes that a fold reads per streamed element.
int folded_bytes(const StepBuilder& builder, const FlatStreaming& form);

// Elements per 16-byte access of the streamed reads and outputs.
int row_width(const StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
