// The arithmetic of a row as a struct, the Form of src/device/rows/multi_pass.cuh.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/elementwise/aligned_accesses.h"
#include "codegen/functor/invariant_parts.h"
#include "codegen/functor/state_text.h"
#include "codegen/rows/multi_pass.h"

namespace redfuser::codegen {

class PassFunctor {
 public:
  // All must outlive this.
  PassFunctor(KernelText& kernel, const FlatStreaming& form, const MultiPassConfig& config);

  // struct Form, at namespace scope.
  std::string text();
  // The text of a bool: groups are aligned. Complete once text() is made.
  std::string vector_condition();
  // Reductions over the threads of a row that use shared memory.
  int slots() const;

 private:
  using Outputs = std::vector<const FlatStreaming::Output*>;

  Emitter emitter() const;
  std::vector<size_t> plain(size_t pass) const;
  std::vector<size_t> ranked(size_t pass) const;
  size_t list_number(size_t accumulator) const;
  Outputs outputs(bool mapped) const;
  std::vector<ir::Expr> inner_axes() const;
  ir::Expr consecutive(ir::Expr offset) const;
  size_t base_number(ir::Expr base);
  std::vector<ir::Expr> group_reads(const std::vector<ir::Expr>& roots, bool keeping) const;
  size_t group_number(ir::Expr read);
  std::string ranked_text(ir::Expr read, const std::string& rank) const;

  void bind_row(Emitter& emitter) const;
  void bind_tail(Emitter& emitter) const;
  void bind_element(Emitter& emitter, const std::vector<ir::Expr>& roots, bool keeping = false);
  void bind_pass(Emitter& emitter, StateText& state, size_t pass) const;
  void bind_references(StateText& state, size_t pass) const;
  void bind_reference(StateText& state, size_t reference) const;

  std::string fetch(const std::string& tag, const std::vector<ir::Expr>& roots,
                    bool keeping = false);
  std::string row_function();
  std::string keep_functions();
  std::string pass_functions(size_t pass);
  std::string start_function(size_t pass) const;
  std::string lift_function(size_t pass);
  std::string settle_function(size_t pass) const;
  std::string list_functions(size_t accumulator);
  std::string finish_function();
  std::string write_rows_function();
  std::string map_functions();
  std::string functions();
  std::string constants() const;
  std::string members() const;

  ir::ExprPool& pool_;
  KernelText& kernel_;
  const FlatStreaming& form_;
  const MultiPassConfig config_;
  const std::vector<Phase> passes_;
  std::vector<size_t> lists_;  // accumulators that are ranked
  std::vector<ir::Expr> kept_;
  std::vector<InvariantPart> row_parts_, tail_parts_;
  std::vector<std::vector<InvariantPart>> pass_parts_;  // from references
  std::vector<ir::Expr> bases_;  // offsets of first elements, each a member of Row
  std::vector<ir::Expr> reads_;  // of groups, each a member of Group
  AlignedAccesses accesses_;
};

}  // namespace redfuser::codegen
