// Row cascades in one pass: a row by lanes of a warp, a block, a cluster, or in segments.
#pragma once

#include "codegen/rows/flat_streaming.h"

namespace redfuser::codegen {

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

}  // namespace redfuser::codegen
