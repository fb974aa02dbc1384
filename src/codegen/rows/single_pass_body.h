// The passes over the tiles of a row: folding elements into the state, writing outputs along the
// row.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/rows/single_pass.h"
#include "codegen/rows/state_struct.h"
#include "codegen/rows/vector_loads.h"

namespace redfuser::codegen {

// Emits text that uses `row`, `lane`, `begin` and `extent` of a segment and its state `s`. Its
// arguments must outlive it.
class SinglePassBody {
 public:
  SinglePassBody(KernelText& kernel, Emitter& emitter, const FlatStreaming& form,
                 const SinglePassConfig& config, VectorLoads& reads, StateStruct& state);

  // Folds the elements of this thread into s, tile after tile.
  void fold();
  // Writes the outputs of every element. The final state must be bound.
  void write_outputs();

  // Parts of fold() for the tile that starts at `tile`. load_tile(): loads it to the registers that
  // the reads declare, and counts elements in `added` if the form counts. fold_tile(): folds it
  // into `t`, which becomes `s`. for_tile(): runs `body` for every element of it, with `at` and its
  // reads bound.
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
