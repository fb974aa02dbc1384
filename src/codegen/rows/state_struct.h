// Merges the states of a row's lanes, warps, blocks and segments.
#pragma once

#include <set>
#include <string>

#include "codegen/rows/single_pass.h"
#include "codegen/rows/state_text.h"

namespace redfuser::codegen {

class StateStruct : public StateText {
 public:
  StateStruct(Emitter& emitter, const FlatStreaming& form, const SinglePassConfig& config)
      : StateText(emitter, form), config_(config) {}

  // Declares the lambdas `identity` (the identity state) and `merged` (merges the states of the
  // lanes of a row), which the texts below call.
  void define();
  // Sets s to the merged state of all threads of the row. `slots`: shared memory of the block.
  void merge_block();
  // Sets s to the merged state of the row's segments.
  void merge_segments(const std::string& stored);

 private:
  void merge_warps();
  std::set<int> merged_lanes() const;

  const SinglePassConfig& config_;
};

}  // namespace redfuser::codegen
