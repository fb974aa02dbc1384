// The algebra of an attention row as a struct, the Form of src/device/attention/merge.cuh, and a
// part of that of mma_fold.cuh.
#pragma once

#include <string>
#include <vector>

#include "codegen/attention/attention.h"
#include "codegen/functor/invariant_parts.h"
#include "codegen/functor/state_text.h"

namespace redfuser::codegen {

// Floats of a row's state without its value columns, filled up to 16 bytes.
int state_head(const AttentionSpec& form);
// Floats of a block of states: the heads of all rows, then their columns.
int state_block(const AttentionSpec& form, int rows);

// Names of the references before and after a tile.
inline const StateText::ReferenceNames kOfStep = {"from.r", "to.r"};

class AttentionFunctor {
 public:
  // `fast`: results are rounded to 16 bits afterwards. `inner`: what a main loop computes for each
  // element; a Row has the costly parts that elements share. All must outlive this.
  AttentionFunctor(KernelText& kernel, const AttentionSpec& form, bool fast,
                   const std::vector<ir::Expr>& inner = {});

  // struct Form, with the kernel's parameters so far and the functions `more`. `merges`: with those
  // of merge.cuh. `base`: what Form derives from; empty if nothing.
  std::string text(const std::string& more = "", bool merges = true, const std::string& base = "");
  // The text of a Form of the kernel that text() is for.
  const std::string& construction() const { return construction_; }
  // aligned_outputs(): whether write() stores columns together wherever it can.
  std::string aligned_outputs() const;
  // For the text of `more`: an emitter of a function, and the coordinates and parts of its `row`.
  Emitter emitter() const;
  void bind_row(Emitter& emitter) const;

 private:
  StateText state_text(Emitter& emitter) const;
  bool of_row(size_t result) const;
  bool is_written(size_t result) const;
  void bind_block(Emitter& emitter) const;
  void bind_tail(Emitter& emitter, StateText& state) const;

  void find_row_parts(const std::vector<ir::Expr>& inner);
  std::string line_function();
  std::string row_function();
  std::string identity_function();
  std::string scalar_functions();
  std::string scalar_function(size_t number, size_t done, size_t next);
  std::string move_function();
  std::string finish_function();
  std::string write_function();
  std::string is_aligned(const FlatStreaming::Output& output) const;
  void write_output(Emitter& emitter, StateText& state, const FlatStreaming::Output& output);
  std::string members() const;

  ir::ExprPool& pool_;
  KernelText& kernel_;
  const AttentionSpec& form_;
  const FlatStreaming& rows_;
  const bool fast_, counts_;
  std::vector<size_t> row_results_;  // those without value columns
  // Of a Row: those of the block, and those of its line.
  std::vector<InvariantPart> block_parts_, line_parts_, tail_parts_;
  std::string construction_;
};

}  // namespace redfuser::codegen
