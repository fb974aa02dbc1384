// The arithmetic of a row as a struct, the Form of src/device/row_fold.cuh.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/functor/invariant_parts.h"
#include "codegen/functor/state_functor.h"
#include "codegen/rows/row_reads.h"

namespace redfuser::codegen {

class RowFunctor {
 public:
  // A row of `whole`, of which `folded` has the accumulators that are folded into states, and those
  // of the numbers `ranked` have lists (src/device/ranking/ranking_rows.cuh). `fast`: results are
  // rounded to 16 bits afterwards. All must outlive this.
  RowFunctor(KernelText& kernel, const FlatStreaming& whole, const FlatStreaming& folded,
             const SinglePassConfig& config, bool fast, std::vector<size_t> ranked = {});

  // struct State and struct Form, at namespace scope. Config is before it.
  std::string text();
  // The text of a bool: groups are aligned vectors. Complete once text() is made.
  std::string vector_condition() { return reads_.vector_condition(); }
  const RowReads& reads() const { return reads_; }

 private:
  using Outputs = std::vector<const FlatStreaming::Output*>;

  // `lists`: the variable with the places of ranked elements.
  Emitter emitter(const std::string& lists = "tail.lists->") const;
  std::string ranked_text(ir::Expr read, const std::string& rank, const std::string& lists) const;
  Outputs outputs(bool mapped) const;
  std::vector<ir::Expr> inner_axes() const;
  void add_base(ir::Expr base);
  void bind_rows(Emitter& emitter) const;
  void bind_tail(Emitter& emitter) const;
  void bind_group(Emitter& emitter) const;
  void bind_element(Emitter& emitter, const std::vector<ir::Expr>& roots) const;
  void bind_reads(Emitter& emitter, bool output) const;
  std::string stored(int64_t value, const std::string& text) const;
  std::string slot(const RowReads::Item& item) const;

  std::string tensor_text(const RowReads::Item& item) const;
  std::string load_text(Emitter& emitter, const RowReads::Item& item, size_t number,
                        const std::string& target) const;
  std::string elements_text(Emitter& e, const RowReads::Item& item,
                            const std::string& target) const;
  std::string to_shared(Emitter& emitter, const RowReads::Item& item, size_t number) const;

  std::string row_members() const;
  std::string row_function();
  std::string shift_function() const;
  std::string words_members(bool kept) const;
  std::string load_function();
  std::string transpose_function() const;
  std::string fetch_function();
  std::string lift_function(size_t phase);
  std::string key_function(size_t list);
  std::string value_function(size_t list);
  std::string tail_members() const;
  std::string finish_function();
  std::string write_rows_function();
  std::string map_function();
  std::string store_function();
  std::string functions();
  std::string constants() const;

  ir::ExprPool& pool_;
  KernelText& kernel_;
  const FlatStreaming& whole_;
  const FlatStreaming& folded_;
  const SinglePassConfig config_;
  const bool fast_;
  const std::vector<size_t> ranked_;
  RowReads reads_;
  StateFunctor state_;
  std::vector<RowReads::OutputPlace> places_;  // of mapped outputs
  std::vector<ir::Expr> bases_;                // offsets of first elements, each a member of Row
  std::vector<InvariantPart> row_parts_, tail_parts_;
};

}  // namespace redfuser::codegen
