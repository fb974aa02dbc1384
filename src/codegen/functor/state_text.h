// The state of a fold as CUDA text: its type, its rescale references, and the merge of states.
#pragma once

#include <string>

#include "codegen/functor/leaf_names.h"

namespace redfuser::codegen {

class StateText {
 public:
  // Names of the references before and after a step, each followed by its number.
  struct ReferenceNames {
    std::string before = "old", after = "new";
  };
  StateText(Emitter& emitter, const FlatStreaming& form) : StateText(emitter, form, {}) {}
  StateText(Emitter& emitter, const FlatStreaming& form, ReferenceNames names);

  // struct State, at namespace scope.
  std::string declaration() const;
  // The body of a function that returns the identity.
  std::string identity_body() const;
  // The body of a function of State s that returns the merged state of lanes;
  // function<Op, arguments>(value) reduces a value over them.
  std::string merged_lanes_body(const std::string& function, const std::string& arguments);
  // The body of a function of const State a and b that returns their merged state.
  std::string merged_pair_body();

  std::string type_of(const cascade::Accumulator& a) const;
  std::string identity_of_accumulator(const cascade::Accumulator& a) const;
  // Binds the leaves of a kind, and the State leaves to members of the state of that name.
  void bind(ir::LeafKind kind, int64_t index, const std::string& text, DType dtype) {
    leaves_.bind(kind, index, text, dtype);
  }
  void bind_state(const std::string& state);
  // Binds every Result to the finish of its stage; the state must be bound. `length`: of the row.
  void bind_results(const std::string& length);

  // declare_*: declares old<r> with the value of state s, and new<r> uninitialised. update_*: sets
  // old<r> from `state`, and new<r> once accumulators [0, done) of `state` determine it. renew_*:
  // old<r> = new<r>.
  void declare_old_references();
  void declare_new_references();
  void set_old_references(const std::string& state);
  void update_references(size_t done, const std::string& state);
  void renew_references();
  // The same as members of a struct.
  std::string reference_members() const;
  // after.a<k> = before.a<k> rescaled to the new references ⊕ part; without the first if `empty`.
  // Then sets the references that this determines.
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
  // Sets target to the transport of an accumulator of `state` from old to new references.
  void move(const std::string& target, const cascade::Accumulator& a, const std::string& state);

  LeafNames leaves_;
  ReferenceNames names_;
};

}  // namespace redfuser::codegen
