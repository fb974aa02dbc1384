// The kernels of integer products that need more than their instruction set's own flags.
#pragma once

#include "cpu/simd/integer_gemm.h"
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {

// By dot products of four bytes (AVX512-VNNI, AVX-VNNI); null where the set has none.
const IntegerKernels* dot_kernels();
// By tiles (AMX); null where the set has none.
const IntegerKernels* tile_kernels();
// The same products without checks, for the few rows of which no tile is worth its configuration.
void multiply_by_dots(const IntegerMultiplyArgs& args);
// IntegerKernels::quantize of the set.
void quantize_integers(const IntegerQuantizeArgs& args);

}  // namespace redfuser::cpu::RF_ISA
