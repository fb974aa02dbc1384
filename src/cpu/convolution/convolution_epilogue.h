// What follows a convolution element by element, computed from each block of its sums while they
// are in cache.
#pragma once

#include <optional>
#include <vector>

#include "cpu/convolution/sum_activation.h"
#include "cpu/opaque/image/sums.h"
#include "cpu/opaque/opaque.h"
#include "cpu/steps/block_epilogue.h"
#include "cpu/steps/step_form.h"
#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {

// At fixed sizes, by tiles of at most so many filters and positions.
class ConvolutionEpilogue {
 public:
  // Of a step that has one; `sums` is their dtype. With a part `head` of its body, of the same
  // class of elements as the sums, that part's values take their place.
  ConvolutionEpilogue(const StepForm& form, DType sums, int64_t filters, int64_t positions,
                      ir::Expr head = nullptr);

  ir::ValueId value() const { return value_; }
  // Microseconds for each sum, by estimate.
  double time() const;
  // All that becomes of the sums in their place, where it is one; else none.
  const Activation& activation() const { return activation_.each; }

 private:
  friend class EpilogueSums;

  ir::ExprPool pool_;
  TileProgram program_;
  BlockEpilogue epilogue_;
  ir::ValueId value_;
  int64_t width_;    // bytes of a sum
  int64_t columns_;  // of a tile: positions, or filters where `across_`
  // Of the output, where the sums lie in its memory: what follows them is one pass over them.
  int64_t filters_ = 0, positions_ = 0;
  bool in_place_ = false;
  bool across_ = false;       // of one position: the filters are the columns of a tile
  SumActivation activation_;  // of sums in their place, where it is all of the body
};

// One run, whose output is allocated.
class EpilogueSums final : public SumsTarget {
 public:
  EpilogueSums(const ConvolutionEpilogue& epilogue, RunContext& context);

  int64_t near_sums() const override { return 1 << 14; }
  Activation activation() const override { return epilogue_.activation(); }
  Place place(int worker, const Block& block) override;
  Place wide_place(int worker, const Block& block, int64_t stride) override;
  void done(int worker, const Block& block, const Place& place) override;

 private:
  void prepare(int worker, int64_t bytes);

  const ConvolutionEpilogue& epilogue_;
  char* output_;
  const char* residual_ = nullptr;
  TileRunner runner_;
  struct Memory {
    ScratchArray<char> owned;
    char* sums = nullptr;
    int64_t bytes = 0;  // of the sums
  };
  std::vector<Memory> workers_;
};

}  // namespace redfuser::cpu
