// The passes of a fold over its tiles: accumulators into the state, and outputs along the row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/rows/single_pass.h"
#include "codegen/rows/state_struct.h"
#include "codegen/rows/vector_loads.h"

namespace redfuser::codegen {

// Emits text over `row`, `lane`, `begin` and `extent` of a segment and its state `s`. All that it
// refers to outlives it.
class SinglePassBody {
 public:
  SinglePassBody(KernelText& kernel, Emitter& emitter, const FlatStreaming& form,
                 const SinglePassConfig& config, VectorLoads& reads, StateStruct& state);

  // s = the elements of this thread, tile after tile.
  void fold();
  // The outputs of every element, with the final state bound.
  void write_outputs();

  // Parts of fold() for a tile that starts at `tile`: into the registers that the reads declare
  // (and `added`, where the form counts); what lies there into `t`, which then is `s`; `body` for
  // every element that lies there, with `at` and its reads bound.
  void load_tile();
  void fold_tile();
  void for_tile(const std::function<void()>& body);

 private:
  std::string unrolled(bool output) const;
  bool fills() const;
  template <typename Body>
  void for_groups(const std::string& unroll, Body body);
  template <typename Body>
  void for_elements(bool output, Body body);
  void emit_tiles(const std::string& text);
  void fold_phase(const Phase& phase);
  void fold_element(size_t k);
  void write_group();

  KernelText& kernel_;
  Emitter& emitter_;
  const FlatStreaming& form_;
  const SinglePassConfig& config_;
  VectorLoads& reads_;
  StateStruct& state_;
  std::vector<Phase> phases_;
};

}  // namespace redfuser::codegen
