// Functions of a Form that every main loop of attention calls (src/device/attention).
#pragma once

#include <string>

#include "codegen/attention/attention_functor.h"
#include "codegen/attention/visible_keys.h"
#include "codegen/core/tma_tile.h"

namespace redfuser::codegen {

class FoldFunctions {
 public:
  // All must outlive this.
  FoldFunctions(KernelText& kernel, const AttentionSpec& form, const AttentionFunctor& functor)
      : kernel_(kernel), form_(form), rows_(form.rows), functor_(functor) {}

  // Whether anything of a new state is known before its elements.
  bool starts() const;
  // Whether the value state has to be rescaled.
  bool moves() const;
  // kPhases, kStarts and kMoves; `more`: further numbers.
  std::string constants(size_t phases, const std::string& more) const;
  std::string start() const;
  // settle() of a phase. `over_quads`: it reduces the parts of the lanes that share a row.
  std::string settle(size_t number, const Phase& phase, bool over_quads) const;
  std::string same() const;
  std::string visited(const VisibleKeys& visible, int keys) const;
  // A function of (to, map, barrier, column, from, row) that copies a slab of the operand.
  std::string copy(const char* name, const TmaOperand& operand) const;

 private:
  KernelText& kernel_;
  const AttentionSpec& form_;
  const FlatStreaming& rows_;
  const AttentionFunctor& functor_;
};

}  // namespace redfuser::codegen
