// Parts of the scores that many elements of a tile share.
//
// A key term depends on the streamed key and on what a tile of rows has in common: a padding mask,
// a bias per key. A diagonal term depends on the row and the key through their difference alone: a
// relative position's bias. A tile of R rows and K keys has K of the one and R + K - 1 of the
// other, for R · K elements, so that they are evaluated ahead of the elements. Dependence decides:
// what is a function of the difference is found by substituting key = row + difference.
//
// A strip is a tensor of up to 4 bytes per element, read by row and key, whose keys are adjacent: a
// tile's part of it is copied ahead.
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

// What the lifts of either form read, or compute by many operations, at every element.
struct BiasTiles {
  std::vector<BiasTile> terms;
  std::vector<ScoreStrip> strips;
};
BiasTiles bias_tiles(ir::ExprPool& pool, const AttentionSpec& form,
                     const std::vector<const ScoreSpec*>& scores);

}  // namespace redfuser::codegen
