// Parts of the scores that many elements of a tile share.
//
// A key term depends on the streamed key and on what a tile of rows has in common: a padding mask,
// a bias per key. A diagonal term depends on the row and the key through their difference alone: a
// relative position's bias. A tile of R rows and K keys has K of the one and R + K - 1 of the
// other, for R · K elements, so that they are evaluated ahead of the elements. Dependence decides:
// what is a function of the difference is found by substituting key = row + difference.
#pragma once

#include <vector>

#include "codegen/score_form.h"

namespace redfuser {

struct ScoreTerm {
  Expr expr;   // as it stands in the lifts
  Expr place;  // an axis: the key, or key - row + rows - 1
  Expr value;  // `expr` as a function of the place
  bool diagonal;

  int places(int rows, int keys) const;  // of a tile, a multiple of 4
  int bytes() const;                     // of a value in shared memory
};

// Terms of the lifts of either form that read memory, or take many operations, at every element.
std::vector<ScoreTerm> score_terms(ExprPool& pool, const AttentionForm& form,
                                   const std::vector<const ScoreForm*>& scores);

}  // namespace redfuser
