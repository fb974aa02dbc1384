// The state of a fold as text: its type, the references that it settles, and how states merge.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codegen/rows/leaf_names.h"
#include "codegen/rows/single_pass.h"

namespace redfuser::codegen {

class StateStruct {
 public:
  StateStruct(Emitter& emitter, const FlatStreaming& form, const SinglePassConfig& config);

  // struct State, at namespace scope.
  std::string declaration() const;
  // The lambdas `identity` (of a state) and `merged` (of the states of the lanes of a row), which
  // the texts below call.
  void define();
  // s = the state of all threads of the row, from one of each; `slots` are a block's.
  void merge_block();
  // The same from the stored states of the row's segments.
  void merge_segments(const std::string& stored);

  std::string type_of(const cascade::Accumulator& a) const;
  std::string identity_of_accumulator(const cascade::Accumulator& a) const;
  // Binds the leaves of a kind, and those that the state of that name holds, in this scope.
  void bind(ir::LeafKind kind, int64_t index, const std::string& text, DType dtype) {
    leaves_.bind(kind, index, text, dtype);
  }
  void bind_state(const std::string& state);

  // Declares old<r> as state s has it, new<r> without a value; sets new<r> by what accumulators
  // [0, done) of `state` settle; old<r> = new<r>.
  void declare_old_references();
  void declare_new_references();
  void update_references(size_t done, const std::string& state);
  void renew_references();
  // target = the transport of an accumulator of `state`, from old to new references.
  void move(const std::string& target, const cascade::Accumulator& a, const std::string& state);

 private:
  bool uses(ir::LeafKind kind, size_t reference) const;
  bool moves(size_t reference) const { return uses(ir::LeafKind::OldResult, reference); }
  void assign(const std::string& target, ir::Expr expr, DType dtype, const std::string& state,
              bool with_references);
  void define_merge();
  void merge_warps();
  std::set<int> merged_lanes() const;

  Emitter& emitter_;
  const FlatStreaming& form_;
  const SinglePassConfig& config_;
  const bool counts_;
  LeafNames leaves_;
};

}  // namespace redfuser::codegen
