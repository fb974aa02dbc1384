// Names of the passes over elements that a functor and a main loop share.
#pragma once

// A pass over the elements of a tile: references that it needs are known from the passes before.
template <int P>
struct Phase {};

// Reads of an element: those of the fold, those of outputs that the fold does not need, all of
// outputs.
enum class Reads { Folded, Remaining, Written };
