// The kernel tables of every instruction set of this machine.
#pragma once

#include <vector>

#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {
namespace baseline {
extern const KernelTable& table();
}
#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable& table();
}
namespace avx512 {
extern const KernelTable& table();
}
#endif
}  // namespace redfuser::cpu

namespace redfuser {

inline std::vector<const cpu::KernelTable*> kernel_tables() {
  std::vector<const cpu::KernelTable*> result = {&cpu::baseline::table()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) result.push_back(&cpu::avx2::table());
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    result.push_back(&cpu::avx512::table());
  }
#endif
  return result;
}

}  // namespace redfuser
