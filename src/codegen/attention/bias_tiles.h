// Parts of the scores that many elements of a tile share.
//
// A key term depends on the streamed key and on indices that a tile of rows shares: a padding mask,
// a bias per key. A diagonal term depends on the row and the key through their difference alone: a
// bias by relative position. A tile of R rows and K keys has R · K elements, but K values of a key
// term and R + K - 1 of a diagonal term, so they are evaluated once, before the elements. Functions
// of the difference are found by substituting key = row + difference.
//
// A strip is a tensor of up to 4 bytes per element, read by row and key and contiguous along the
// keys: the tile's part of it is copied to shared memory in advance.
#pragma once

#include <vector>

#include "codegen/attention/score_form.h"

namespace redfuser::codegen {

struct BiasTile {
  ir::Expr expr;   // as it stands in the lifts
  ir::Expr place;  // an axis: the key, or key - row + rows - 1
  ir::Expr value;  // `expr` as a function of the place
  bool diagonal;

  int places(int rows, int keys) const;  // of a tile, a multiple of 4
  int bytes() const;                     // of a value in shared memory
};

struct ScoreStrip {
  ir::Expr read;
  ir::Expr offset;  // of the element of key 0

  int bytes() const { return static_cast<int>(size_of(read->dtype)); }
  int pitch(int keys) const;  // bytes between rows in shared memory, without bank conflicts
};

// Key terms and diagonal terms of the lifts of both forms: reads, and computations of many
// operations.
struct BiasTiles {
  std::vector<BiasTile> terms;
  std::vector<ScoreStrip> strips;
};
BiasTiles bias_tiles(ir::ExprPool& pool, const AttentionSpec& form,
                     const std::vector<const ScoreSpec*>& scores);

}  // namespace redfuser::codegen
