#include "cpu/machine/this_machine.h"

#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {

const select::CpuMachine& this_machine() {
  return select::cpu_machine(static_cast<int64_t>(sizeof(float)) * kernels().window_lanes_f32);
}

}  // namespace redfuser::cpu
