// The state of a fold as text: its type, the references that it settles, and how states merge.
#pragma once

#include <string>

#include "codegen/rows/leaf_names.h"

namespace redfuser::codegen {

class StateText {
 public:
  // What references are called before and after a step, each followed by its number.
  struct ReferenceNames {
    std::string before = "old", after = "new";
  };
  StateText(Emitter& emitter, const FlatStreaming& form) : StateText(emitter, form, {}) {}
  StateText(Emitter& emitter, const FlatStreaming& form, ReferenceNames names);

  // struct State, at namespace scope.
  std::string declaration() const;
  // The statements of a function that returns the identity.
  std::string identity_body() const;
  // The statements of a function of State s that returns the merged state of lanes:
  // function<Op, arguments>(value) combines a value of all of them.
  std::string merged_lanes_body(const std::string& function, const std::string& arguments);
  // The statements of a function of const State a and b that returns their merged state.
  std::string merged_pair_body();

  std::string type_of(const cascade::Accumulator& a) const;
  std::string identity_of_accumulator(const cascade::Accumulator& a) const;
  // Binds the leaves of a kind, and those that the state of that name holds, in this scope.
  void bind(ir::LeafKind kind, int64_t index, const std::string& text, DType dtype) {
    leaves_.bind(kind, index, text, dtype);
  }
  void bind_state(const std::string& state);
  // Binds every Result, the finish of a stage over the state that is bound; `length`: of the row.
  void bind_results(const std::string& length);

  // Declares old<r> as state s has it, new<r> without a value; sets old<r> as `state` has it,
  // new<r> by what accumulators [0, done) of `state` settle; old<r> = new<r>.
  void declare_old_references();
  void declare_new_references();
  void set_old_references(const std::string& state);
  void update_references(size_t done, const std::string& state);
  void renew_references();
  // The same as members of a struct.
  std::string reference_members() const;
  // after.a<k> = before.a<k>, moved to the new references, ⊕ part; `empty`: nothing is before. Then
  // the references that this settles.
  void settle(size_t k, const std::string& part, const std::string& before,
              const std::string& after, bool empty);

 protected:
  Emitter& emitter_;
  const FlatStreaming& form_;
  const bool counts_;

 private:
  bool uses(ir::LeafKind kind, size_t reference) const;
  bool moves(size_t reference) const { return uses(ir::LeafKind::OldResult, reference); }
  void assign(const std::string& target, ir::Expr expr, DType dtype, const std::string& state,
              bool with_references);
  // target = the transport of an accumulator of `state`, from old to new references.
  void move(const std::string& target, const cascade::Accumulator& a, const std::string& state);

  LeafNames leaves_;
  ReferenceNames names_;
};

}  // namespace redfuser::codegen
