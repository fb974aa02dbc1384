// The state of a fold as CUDA text: its type, its rescale references, and the merge of states.
#pragma once

#include <optional>
#include <string>

#include "codegen/functor/leaf_names.h"

namespace redfuser::codegen {

// The references that lifts or transports use.
std::vector<size_t> used_references(const FlatStreaming& form);

class StateText {
 public:
  // Names of the references before and after a step, each followed by its number.
  struct ReferenceNames {
    std::string before = "old", after = "new";
  };
  StateText(Emitter& emitter, const FlatStreaming& form) : StateText(emitter, form, {}) {}
  // `columns`: an accumulator with a state for each column. The struct has no member for it.
  StateText(Emitter& emitter, const FlatStreaming& form, ReferenceNames names,
            std::optional<size_t> columns = {});

  // struct State, at namespace scope.
  std::string declaration() const;
  // The members of a state with its references, r<r>.
  std::string members_with_references() const;
  // Bodies of functions that return a state. identity: `references`: with its references, those of
  // the state `s`. merged_lanes: of State s of lanes from Low to High; merged_pair: of const State
  // a and b.
  void identity(bool references);
  void merged_lanes();
  void merged_pair();

  std::string type_of(const cascade::Accumulator& a) const;
  std::string identity_of_accumulator(const cascade::Accumulator& a) const;
  // Binds the leaves of a kind, and the State leaves to members of the state of that name.
  void bind(ir::LeafKind kind, int64_t index, const std::string& text, DType dtype) {
    leaves_.bind(kind, index, text, dtype);
  }
  void bind_state(const std::string& state);
  // Binds every Result to the finish of its stage; the state must be bound. `length`: of the row.
  void bind_results(const std::string& length);
  // The same of one stage, whose finish has no Result that is not bound; returns its text.
  std::string bind_result(size_t stage, const std::string& length);

  // declare_*: declares old<r> with its value in `state`, and new<r> uninitialised. set_*,
  // update_*: sets old<r> from `state`, and new<r> once accumulators [0, done) of `state` determine
  // it. renew_*: old<r> = new<r>.
  void declare_old_references(const std::string& state);
  void declare_new_references();
  void set_old_references(const std::string& state);
  void update_references(size_t done, const std::string& state);
  void renew_references();
  // Binds the new references that accumulators [0, done) determine.
  void bind_new_references(size_t done);
  // The same as members of a struct.
  std::string reference_members() const;
  // after.a<k> = before.a<k> rescaled to the new references ⊕ part.
  void combine(size_t k, const std::string& part, const std::string& before,
               const std::string& after);
  // Rescales the elements of an array of float states of the accumulator `columns`, which belong to
  // the state `before`, to the new references.
  void move_columns(const std::string& array, const std::string& before);
  // The same as combine, without the old state if `empty`. Then sets the references that this
  // determines.
  void settle(size_t k, const std::string& part, const std::string& before,
              const std::string& after, bool empty);

 protected:
  Emitter& emitter_;
  const FlatStreaming& form_;
  const bool counts_;

 private:
  bool moves(size_t reference) const;
  bool is_columns(size_t k) const { return columns_ == k; }
  void bind_references();
  void assign(const std::string& target, ir::Expr expr, DType dtype, const std::string& state,
              bool with_references);
  std::string value_of(ir::Expr expr, DType dtype, const std::string& state, bool with_references);
  // Accumulator k of `state`, at the new references.
  std::string moved_state(size_t k, const std::string& state);

  LeafNames leaves_;
  ReferenceNames names_;
  const std::optional<size_t> columns_;
};

}  // namespace redfuser::codegen
