// Times that a session measures, and the state of the GPU that it measured on.
//
//   session.time_runs(true);
//   session.run(inputs);
//   session.run_timing()->compute_us;
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace redfuser {

// One run on a GPU, in microseconds. Spans of the device are those between CUDA events on the run's
// stream.
struct RunTiming {
  double host_to_device_us = 0;  // device: copies of inputs that lie in host memory
  double compute_us = 0;         // device: kernels and products, with the gaps between them
  double device_to_host_us = 0;  // device: copies of outputs to host memory
  double enqueue_us = 0;         // host: handing the kernels, or the graph of them, to the driver
};

// A GPU's clocks, temperature and power at one moment. 0: not known.
struct DeviceState {
  int sm_mhz = 0, memory_mhz = 0;          // now, by NVML
  int max_sm_mhz = 0, max_memory_mhz = 0;  // by the driver
  int temperature_c = 0;                   // by NVML
  double power_w = 0;                      // by NVML
  std::string note;                        // why NVML says nothing; else empty
};

// One launch of a kernel, or one call of the product library.
struct KernelTime {
  std::string name;  // in machine code; "cublaslt" for the product library
  double start_us = 0, duration_us = 0;
};

// One step's time in a profiled run. On a GPU by CUDA events between the launches, less the events'
// own time; steps follow one another.
struct StepTime {
  std::string label;  // the user's nodes
  std::string kind;   // as in StepInfo
  double start_us = 0, duration_us = 0;
  // Bytes of the elements that the step reads and writes, each element once; 0 where the elements
  // depend on data.
  int64_t bytes = 0;
  std::vector<KernelTime> kernels;  // on a GPU; on the CPU the steps inside of control flow
};

// A program's time on a GPU, without copies from and to the host.
struct DeviceTiming {
  double median_us = 0, min_us = 0;
  int replays = 0;
};

}  // namespace redfuser
