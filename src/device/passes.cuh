// What functors and main loops share: names of passes and parts, and the shares of lanes.
#pragma once

// A pass over the elements of a tile: references that it needs are known from the passes before.
template <int P>
struct Phase {};

// Reads of an element: those of the fold, those of outputs that the fold does not need, all of
// outputs.
enum class Reads { Folded, Remaining, Written };

// What a block computes: rows (or parts of them in a cluster); a segment, of which the row's last
// block merges the states and writes; a segment's state; outputs of a segment from all states.
enum class RowPart { Row, Segment, Partials, Finish };

// compute(i) for the numbers below `count` that fall to one of Lanes threads, `lane`.
template <int Lanes, typename Compute>
__device__ __forceinline__ void each_of_lane(int lane, long long count, const Compute& compute) {
  for (long long i = lane; i < count; i += Lanes) compute(i);
}
