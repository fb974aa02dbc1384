// What the inputs of a decoder hold in each run, beside its states.
#pragma once

#include "redfuser/generate.h"

namespace redfuser::runtime {

// The tokens of one row of the batch from its first position on.
struct TokenRow {
  std::vector<int64_t> ids, seen, positions;  // `seen`: 0 for padding, else 1
  int64_t tokens = 0;                         // without padding
  void push(int64_t id, int64_t mask);
};

class DecoderInputs {
 public:
  // UserError as Generator's constructor has it.
  DecoderInputs(const Model& model, const std::vector<StatePair>& states);

  bool takes_mask() const;
  // The model declares that a run has one token of each row.
  bool takes_single_tokens() const;
  // The inputs of a run on the positions [begin, end) of rows that have so many at least, in host
  // memory.
  NamedTensors fill(const std::vector<TokenRow>& rows, int64_t begin, int64_t end) const;

 private:
  enum class Role {
    Ids,
    Mask,
    Positions,
    CachePositions,
    UseCache,
    KeptLogits,
    RowPast,
    RowTotal,
    RowLast,
    Past,
    Total
  };
  struct Known;
  struct Input {
    ValueInfo info;
    Role role;
  };
  static const Known kKnown[];
  static Role role_of(const ValueInfo& info);

  std::vector<Input> inputs_;
};

}  // namespace redfuser::runtime
