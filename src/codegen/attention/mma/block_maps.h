// Elementwise steps whose results split-KV attention reads, such as a RoPE and the positions that a
// cache gets, as the first part of its kernel: each block computes what its rows read. Blocks that
// read the same elements all compute them, and write the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/attention/attention.h"
#include "codegen/elementwise/map_body.h"

namespace redfuser::codegen {

// The attention with maps before it.
inline constexpr const char* kBlockMapsFamily = "attention_maps";

struct BlockMaps {
  AttentionSpec form;            // of packed rows
  std::vector<MapShape> shapes;  // of a block, where `form.others` have their coordinates
  std::vector<ir::Expr> items;   // what its threads share, of each
  std::string equations;
};

// The maps with the attention `form` of a cascade that reads them, all of them steps of the
// builder's graph. nullopt if a map reduces, or has a result that the cascade does not read. An
// axis whose places do not follow from a block's coordinates is computed whole by each block.
std::optional<BlockMaps> block_maps(StepBuilder& builder, const AttentionSpec& form,
                                    const fuse::CascadeStep& step,
                                    const std::vector<const fuse::MapStep*>& maps);

// How often a thread computes an item, one after the other. Int64 over sizes.
ir::Expr turns_of(ir::ExprPool& pool, const BlockMaps& maps, int threads);
// Microseconds of so many turns.
double block_maps_time(int64_t turns);

// The text that computes the maps in a block of `threads`, at the coordinates that `other` numbers,
// an expression in C++. Another thread may read the results after a barrier.
std::string block_maps_text(KernelText& kernel, const BlockMaps& maps, int threads,
                            const std::string& other);

}  // namespace redfuser::codegen
