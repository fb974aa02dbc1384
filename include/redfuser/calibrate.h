// Measuring the numbers of a GPU that estimates of kernels' times are made of.
#pragma once

#include <string>
#include <vector>

namespace redfuser {

// A rate as measured and as the table of machines has it.
struct CalibratedRate {
  std::string name, unit;  // "reads from L2", "bytes per SM and clock"
  double measured = 0, table = 0;
};

struct Calibration {
  std::string device, architecture;  // "NVIDIA H100 80GB HBM3", "sm_90a"
  int multiprocessors = 0;
  int clock_mhz = 0;       // the highest, to which rates per clock refer
  int load_clock_mhz = 0;  // by NVML, right after matrix products; 0: not known
  std::vector<CalibratedRate> rates;
  std::vector<std::string> rows;  // C++ for src/select/machine.cpp, with the measured numbers
};

// Measures the first GPU for about two seconds. UserError without a GPU, NVRTC or cuBLASLt.
Calibration calibrate_gpu();

}  // namespace redfuser
