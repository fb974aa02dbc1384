#include "select/cpu_machine.h"

namespace redfuser::select {
namespace {

CpuMachine vectors_of_32_bytes() {
  CpuMachine m;
  m.lanes = 8, m.block_rows = 6;
  m.l1_bytes = 32 << 10, m.l2_bytes = 512 << 10;
  m.l1_rate = 140000, m.l2_rate = 80000, m.memory_rate = 25000;
  m.divide_rate = 800, m.permute_rate = 5000;
  m.special_rate = 2000, m.convert_rate = 7000, m.narrow_rate = 2500;
  m.product_rate = 48000, m.product_row_rate = 12000, m.product_dot_rate = 33000;
  m.sums_rate = 50000;
  m.window_rate = 47000, m.window_block = 0.02;
  m.square_rate = 8000;
  m.columns_rate = 4500;
  m.dot_rate = 80000, m.integer_rate = 5000;
  return m;
}

// Products, windows and byte products are measured, with kernels that need no extension, on a
// processor of AVX-512; the other rates follow from the number of lanes.
CpuMachine vectors_of_16_bytes() {
  CpuMachine m = vectors_of_32_bytes();
  m.lanes = 4;
  m.divide_rate = 400, m.permute_rate = m.gather_rate;
  m.special_rate = 1000, m.convert_rate = 2000, m.narrow_rate = 1000;
  m.product_rate = 19500, m.product_row_rate = 6000, m.product_dot_rate = 12000;
  m.window_rate = 18500, m.dot_rate = 30000, m.integer_rate = 2500;
  return m;
}

}  // namespace

const CpuMachine& cpu_machine(int64_t vector_bytes) {
  static const CpuMachine narrow = vectors_of_16_bytes(), middle = vectors_of_32_bytes(), wide;
  return vector_bytes >= 64 ? wide : vector_bytes >= 32 ? middle : narrow;
}

}  // namespace redfuser::select
