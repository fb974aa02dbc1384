// Estimates of CPU kernels by the rows of the machine table.
#include <gtest/gtest.h>

#include "cpu/estimate/program_time.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser {
namespace {

TEST(CpuMachines, NarrowerVectorsTakeLonger) {
  for (const double m : {1, 6, 64, 512}) {
    for (const double n : {16, 49, 1024}) {
      for (const bool half : {false, true}) {
        const cpu::ProductSizes sizes{m, n, 256, half, true};
        const double narrow = cpu::product_time(sizes, select::cpu_machine(16));
        const double middle = cpu::product_time(sizes, select::cpu_machine(32));
        const double wide = cpu::product_time(sizes, select::cpu_machine(64));
        EXPECT_GT(narrow, middle) << m << " rows, " << n << " columns";
        EXPECT_GT(middle, wide) << m << " rows, " << n << " columns";
      }
    }
  }
}

TEST(CpuMachines, HaveTheVectorsOfTheKernels) {
  EXPECT_EQ(cpu::this_machine().lanes, static_cast<double>(cpu::kernels().window_lanes_f32));
}

}  // namespace
}  // namespace redfuser
