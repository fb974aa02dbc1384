// The state of a Streaming as functions of a functor: what folds along rows, columns or ranks
// share.
#pragma once

#include <string>
#include <vector>

#include "codegen/functor/state_text.h"

namespace redfuser::codegen {

class StateFunctor {
 public:
  // `fast`: results are rounded to 16 bits afterwards. All must outlive this.
  StateFunctor(KernelText& kernel, const FlatStreaming& form, bool fast)
      : kernel_(kernel), form_(form), fast_(fast), phases_(phases_of(form)) {}

  // struct State, at namespace scope.
  std::string declaration() const;
  // struct Running: a state to which a tile is added, its parts, and references before and after.
  std::string running() const;
  // The functions, whose text may use the kernel's sizes:
  //   identity(), merged<High, Low>(s) over lanes, merge(a, b)
  //   start(t, s)             references before the first tile are those of s
  //   begin(t, s, added)      a tile of so many elements is added to s
  //   settle<Whole>(Phase<P>, t, s)
  //                           the state after the parts of a pass are known; Whole: s is empty
  //   renew(t)                references before the next tile are those after this one
  std::string functions();
  // The text that adds the element `at` to the parts of a pass in `running`; its reads are bound.
  void lift(Emitter& emitter, size_t phase, const std::string& running) const;

  size_t phases() const { return phases_.size(); }
  // The lifts of a pass.
  std::vector<ir::Expr> lifts(size_t phase) const;

 private:
  Emitter emitter() const;
  std::string settle(size_t phase) const;

  KernelText& kernel_;
  const FlatStreaming& form_;
  const bool fast_;
  const std::vector<Phase> phases_;
};

}  // namespace redfuser::codegen
