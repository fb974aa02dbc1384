// Signs and monotonicity, proved by structure.
#pragma once

#include <optional>

#include "cascade/algebra/algebra.h"

namespace redfuser::cascade {

enum class Sign { Unknown, Negative, NonNegative, Positive };

// The sign of a value for every input, as far as it can be proved: exp is positive, a sum over a
// non-empty axis of positive values is positive, ...
Sign sign_of(const StageScope& scope, ir::Expr expr);

// body = φ_d(u) with φ strictly monotone in the streamed part u, for every d.
struct Monotone {
  ir::Expr u = nullptr;
  bool increasing = true;
};
std::optional<Monotone> monotone(const StageScope& scope, ir::Expr body);

}  // namespace redfuser::cascade
