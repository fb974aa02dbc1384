// A CUDA driver, an NVRTC, a cuBLASLt and an NVML without a GPU: memory is the host's, kernels are
// counted and not run; what a real driver refuses is refused, and so are launches of kernels whose
// text contains FAKE_CUDA_FAILS of the environment. The libraries are found like the real
// ones; tests look into them through this structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace redfuser::device_tests {

struct FakeCuda {
  // Properties of the GPU, set by tests.
  int init_result = 0;
  int devices = 1;
  int architecture = 90;
  int driver_version = 13000;
  int module_result = 0;
  bool failed = false;      // a kernel did
  int lost_captures = 0;    // so many of the next ones fail
  bool moves_bytes = true;  // copies and fills do, which need memory that is there
  size_t memory = size_t{1} << 30;
  // The time of a kernel of this text with so many threads; a negative one: it does not launch.
  // Without it every span between events with something between them is 1 ms.
  std::function<double(const std::string& text, unsigned block)> kernel_ms;
  // A multiprocessor has no room for a block of a kernel of this text.
  std::function<bool(const std::string& text)> crowded;
  double copy_ms = 0;  // the time of every copy, where kernels have times
  // Static shared memory of a kernel of this text, bytes. Without it kernels have none.
  std::function<int(const std::string& text)> static_shared;

  // Of products, by the library's proposals, so many of them.
  std::function<double(int proposal)> product_ms;
  int proposals = 4;
  // By NVML, which shows the GPU at this bus address alone.
  std::string bus = "0000:19:00.0";
  unsigned sm_mhz = 1755, memory_mhz = 2619, temperature_c = 41, power_mw = 312500;

  // Recorded calls.
  struct Launch {
    void* stream;
    std::vector<uint64_t> arguments;  // of a tensor map the first bytes
    unsigned block;                   // 0: a product
    int proposal = 0;
    size_t kernel = 0;  // by its text
    unsigned grid[3] = {1, 1, 1};
  };
  std::vector<Launch> launches;  // neither recorded nor replayed
  std::vector<Launch> replayed;
  double clock_ms = 0;
  int operations = 0;  // copies, launches and products that the device has done
  int recorded = 0, replays = 0, live_graphs = 0, graphs = 0, graph_updates = 0;
  int changed_nodes = 0;      // of graphs, by their arguments alone
  int changed_at_replay = 0;  // those before the last replay
  bool changes_nodes = true;  // the driver takes such changes
  // Streams that wait for an event, and the operations that the device had done at the event.
  std::vector<std::pair<void*, int>> stream_waits;
  std::vector<size_t> awaits;       // numbers of nodes that recorded work was made to wait for
  std::vector<int> early;           // numbers of recorded launches that may start before others end
  std::vector<unsigned> carveouts;  // of shared memory, percent, that launches prefer
  int to_device = 0, to_host = 0, on_device = 0;  // copies
  int allocations = 0, pinned = 0;
  int contexts = 0;  // retained
  int proposals_asked = 0;
  std::vector<std::string> refusals;  // by the rules of launch_rules.h
  size_t used = 0;
  std::map<uint64_t, size_t> blocks;
};

// `fake_cuda` of the driver's library.
using GetFakeCuda = FakeCuda* (*)();

}  // namespace redfuser::device_tests
