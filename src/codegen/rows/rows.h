// Row cascades: one row's reductions and outputs by a warp, a block or a cluster.
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

// How a form of scalar states is computed: each thread folds its elements into a state of its own,
// and the form's transports merge the states of lanes, warps, blocks and segments.
struct SinglePassConfig {
  enum class Part {
    Row,       // a block or a part of it, or a cluster, has the whole row
    Segment,   // a block folds a segment of it; the row's last merges the states and writes
    Partials,  // a block folds a segment of it and stores its state
    Finish,    // the segments' states are merged and a segment of the outputs written
  };
  Part part = Part::Row;
  int lanes = 32;       // threads of a block that share a row: a power of two up to 32, or all
  int threads = 128;    // of a block
  int width = 4;        // consecutive elements of a thread
  int chunks = 1;       // groups of `width` per thread in a tile
  bool whole = false;   // one tile has the row: what passes share is loaded once
  bool shared = false;  // a tile stays in shared memory, else in registers
  int cluster = 1;      // blocks that share a row
  ir::Expr segment = nullptr;  // elements of a segment: a multiple of a tile

  Parameters parameters() const {
    return {{"lanes", lanes},     {"threads", threads},       {"chunks", chunks},
            {"cluster", cluster}, {"shared", shared ? 1 : 0}, {"whole", whole ? 1 : 0}};
  }
};
// How many segments a row has.
ir::Expr segments_of(ir::ExprPool& pool, const FlatStreaming& form, const SinglePassConfig& config);

// A kernel of lanes · chunks · width · cluster elements at most if `whole`, of any length if not.
// `states` is the scratch buffer of the segments' states.
KernelLaunch single_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                                const SinglePassConfig& config, int64_t states = -1);
// Static shared memory of its blocks, of states of that many bytes; `room_words`:
// VectorLoads::room_words().
int single_pass_static_bytes(const SinglePassConfig& config, int64_t state_bytes, int room_words);

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

struct MultiPassConfig {
  int lanes = 256;    // threads that share a row in a block: 32, or the whole block
  int threads = 256;  // of a block
  int width = 4;      // consecutive elements of a thread
  int chunks = 1;     // groups of `width` per thread that are kept; 0: passes read the row again
  int cluster = 1;    // blocks that share a row

  Parameters parameters() const {
    return {{"lanes", lanes},
            {"threads", threads},
            {"width", width},
            {"chunks", chunks},
            {"cluster", cluster}};
  }
};

// The kernel for rows up to lanes · chunks · width · cluster elements (any length if chunks is 0).
KernelLaunch multi_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                               const MultiPassConfig& config);

// Elements of a 16-byte access for the streamed reads and outputs of the form.
int row_width(const StepBuilder& builder, const FlatStreaming& form);

// Adds the kernels of a form that folds(): one or two run for any sizes.
void add_folds(StepBuilder& builder, const FlatStreaming& form);

}  // namespace redfuser::codegen
