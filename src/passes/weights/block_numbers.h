// The numbers of a matrix in few bits, as they are stored.
#pragma once

#include "base/thread_pool.h"
#include "ir/graph.h"

namespace redfuser::passes {

// Sets bits, codes and zero points from integers [lines, depth] of int32 and the zero points of
// blocks as floats. False if they do not fit in 8 unsigned bits, moved to the range of an unsigned
// type where they are signed.
bool set_codes(ir::WeightCodes& codes, const Tensor& integers, const Tensor& zeros);
// Sets the scales, floats of blocks. False unless all of them are finite numbers of `dtype`.
bool set_scales(ir::WeightCodes& codes, const Tensor& scales, DType dtype);

// Whether the constant is the matrix that the numbers give, element by element.
bool gives(const ir::WeightCodes& codes, const Tensor& constant, ThreadPool& threads);

}  // namespace redfuser::passes
