// Row cascades in one pass; lanes of a warp, a block, a cluster or several segments compute a row.
#pragma once

#include <string>

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

// A configuration for a form with scalar states. Each thread folds its elements into a state, and
// the form's transports merge the states of lanes, warps, blocks and segments.
struct SinglePassConfig {
  enum class Part {
    Row,       // a block, a part of it, or a cluster has the whole row
    Segment,   // a block folds a segment; the row's last block merges the states and writes
    Partials,  // a block folds a segment and stores its state
    Finish,    // a block merges the segments' states and writes a segment of the outputs
  };
  Part part = Part::Row;
  int lanes = 32;              // threads that share a row: a power of two up to 32, or the block
  int threads = 128;           // of a block
  int width = 4;               // consecutive elements of a thread
  int chunks = 1;              // groups of `width` per thread in a tile
  bool whole = false;          // one tile holds the row: passes load it once
  bool shared = false;         // a tile is kept in shared memory, else in registers
  int cluster = 1;             // blocks that share a row
  ir::Expr segment = nullptr;  // elements of a segment: a multiple of a tile
  // Every block has all rows. Outputs that are not in shared memory are stored by the first one.
  bool everywhere = false;

  Parameters parameters() const {
    return {{"lanes", lanes},        {"threads", threads}, {"width", width},
            {"chunks", chunks},      {"cluster", cluster}, {"shared", shared ? 1 : 0},
            {"whole", whole ? 1 : 0}};
  }
};

// The name of a part as src/device has it, and the family of such kernels of a `kind`.
const char* part_name(SinglePassConfig::Part part);
std::string part_family(const char* kind, SinglePassConfig::Part part, int cluster, bool whole);

// The number of segments of a row.
ir::Expr segments_of(ir::ExprPool& pool, const FlatStreaming& form, const SinglePassConfig& config);

// The kernel, for rows of at most lanes · chunks · width · cluster elements if `whole`, else of any
// length. `states` is the scratch buffer of the segments' states.
KernelLaunch single_pass_kernel(StepBuilder& builder, const FlatStreaming& form,
                                const SinglePassConfig& config, int64_t states = -1);
// Bytes of static shared memory of a block; `state_bytes` of a state, `staging_words` as
// RowReads::staging_words().
int single_pass_static_bytes(const SinglePassConfig& config, int64_t state_bytes,
                             int staging_words);

// Text that kernels of rows share: struct Config of src/device/row_fold.cuh, where `vectors` says
// that rows may be aligned; the declaration of `memory`, of a block's shared memory besides tiles,
// with `slots` for states.
std::string row_config(const FlatStreaming& form, const SinglePassConfig& config, bool vectors);
std::string row_memory(const SinglePassConfig& config, int64_t state_bytes, int staging_words,
                       const std::string& slots = "slots");

}  // namespace redfuser::codegen
