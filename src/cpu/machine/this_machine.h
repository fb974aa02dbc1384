// The processor that runs this, as estimates know it.
#pragma once

#include "select/cpu_machine.h"

namespace redfuser::cpu {

// The row of the instruction set whose kernels run (kernels()).
const select::CpuMachine& this_machine();

}  // namespace redfuser::cpu
