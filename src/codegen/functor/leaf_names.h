// The names of a form's leaves (states, references, results, the count) in the text of a kernel.
#pragma once

#include <string>
#include <vector>

#include "codegen/functor/flat_streaming.h"

namespace redfuser::codegen {

class LeafNames {
 public:
  explicit LeafNames(Emitter& emitter) : emitter_(emitter) {}

  // Registers the leaves of these expressions; null is skipped.
  void add(ir::Expr root);
  void add(const cascade::Accumulator& accumulator);
  void add(const FlatStreaming& form);

  // Binds every leaf of that kind and number (Count has one number) to `text`, a value of `dtype`,
  // in the emitter's scope.
  void bind(ir::LeafKind kind, int64_t number, const std::string& text, DType dtype) const;

 private:
  Emitter& emitter_;
  std::vector<ir::Expr> leaves_;
};

}  // namespace redfuser::codegen
