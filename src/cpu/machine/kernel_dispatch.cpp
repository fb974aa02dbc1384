// Chooses among the instruction sets that the kernels were compiled for.
#include <cstdlib>
#include <cstring>

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

namespace {

const KernelTable& choose() {
#if defined(__x86_64__)
  const char* asked = std::getenv("REDFUSER_CPU");
  auto allowed = [&](int level) {
    if (!asked) return true;
    return level <= (std::strcmp(asked, "baseline") == 0 ? 0
                     : std::strcmp(asked, "avx2") == 0   ? 1
                                                         : 2);
  };
  if (allowed(2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return avx512::table();
  }
  if (allowed(1) && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return avx2::table();
  }
#endif
  return baseline::table();
}

}  // namespace

const KernelTable& kernels() {
  static const KernelTable& chosen = choose();
  return chosen;
}

}  // namespace redfuser::cpu
