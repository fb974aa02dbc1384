// NaN tests of streamed values, as in guards of exported softmaxes.
#pragma once

#include "cascade/algebra/algebra.h"

namespace redfuser::cascade {

// A condition free of the streamed axis that equals isnan(term), or null if no earlier sum decides
// it. With `zero_instead`, NaN elements become 0, and the condition may also hold if every element
// is 0 or NaN.
//
// If an earlier stage is d_k = Σ E_l, a NaN among the E_l makes d_k NaN, and a NaN d_k in d (d =
// 1/d_k, d = exp(-log d_k)) makes every element NaN; so isnan(E_l · d) = isnan(d). Where d = 1/d_k
// and no E_l is negative, d_k = 0 makes every element 0·∞ too, and d_k = ∞ makes every element 0 or
// NaN.
ir::Expr nan_condition(const StageScope& scope, const Term& term, bool zero_instead);

}  // namespace redfuser::cascade
