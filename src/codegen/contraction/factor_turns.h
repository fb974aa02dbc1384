// Sums over the points of a turn in two steps, as a fast Fourier transform divides them.
#pragma once

#include <optional>
#include <vector>

#include "codegen/contraction/divide_axis.h"

namespace redfuser::codegen {

// A sum Σ_t A(t)·cos θ(κt) + B(t)·sin θ(κt) over t < N, where θ(m) = c·(m mod N) has whole turns
// over N points and κ is an axis of the results. With t = N2·t1 + t2 and N = N1·N2,
//
//   κ = N1·q + ρ,   θ(κt) = α + γ + δ,   α = N2·θ(ρ·t1),  γ = θ(ρ·t2),  δ = N1·θ(q·t2),
//   P = Σ_t1 A·cos α + B·sin α,  Q = Σ_t1 B·cos α − A·sin α,
//   Σ_t = Σ_t2 (P·cos γ + Q·sin γ)·cos δ + (Q·cos γ − P·sin γ)·sin δ
//
// so that N1 + N2 terms stand for N, and no function is of all of ρ, q and t2. Where the results
// have an axis of two points of which the second one's angle is a quarter of a turn behind the
// first one's, P and Q serve both. After Cooley and Tukey, An algorithm for the machine calculation
// of complex Fourier series (1965).
struct FactoredTurns {
  DType dtype;                      // of P, Q and the table
  ir::Expr elements;                // the number of P and Q
  int64_t table_elements;           // cosine and sine of θ(m) in turn
  DividedStore table;               // to the table; the store's value is its scratch buffer
  DividedStore inner;               // to P and Q, likewise
  std::vector<DividedStore> outer;  // results of whole periods of ρ, and the others
};

// The factors of a store's sum, by a table in the buffer `scratch` and by P and Q in the next one;
// nullopt for other stores, and for a number of points that has no two factors near each other.
std::optional<FactoredTurns> factored_turns(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                            const Store& store, int64_t scratch);

}  // namespace redfuser::codegen
