// The states of a row's lanes, warps, blocks and segments merged.
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

  // The lambdas `identity` (of a state) and `merged` (of the states of the lanes of a row), which
  // the texts below call.
  void define();
  // s = the state of all threads of the row, from one of each; `slots` are a block's.
  void merge_block();
  // The same from the stored states of the row's segments.
  void merge_segments(const std::string& stored);

 private:
  void merge_warps();
  std::set<int> merged_lanes() const;

  const SinglePassConfig& config_;
};

}  // namespace redfuser::codegen
