// A numerical test of separability, independent of the symbolic proof.
#pragma once

#include "cascade/algebra/algebra.h"

namespace redfuser::cascade {

// The rank of the matrix F(x_a, d_b) sampled at `points` random streamed elements and as many
// random results: a body of finite rank r (F = Σ G_j(x)·H_j(d)) shows at most r; one that shows
// `points` has no form of smaller rank. Deterministic.
int sampled_rank(const StageScope& scope, ir::Expr body, int points);

}  // namespace redfuser::cascade
