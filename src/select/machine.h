// The one table of machines: what is a number of the hardware. The driver gives the numbers of a
// GPU at hand, a row of the table those of a GPU that kernels are generated for without one.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "redfuser/tensor.h"

namespace redfuser::select {

// Rates are what kernels reach, not the data sheet's: bytes, or operations (a multiply-add is two),
// per microsecond.
struct Machine {
  int architecture = 90;  // compute capability times ten
  int multiprocessors = 132;
  // Largest shared memory of a block, static and dynamic; a multiprocessor has kBlockReserved
  // more, and as much besides is taken by each of its blocks.
  int shared_bytes = 227 * 1024;
  int64_t l2_bytes = 50 << 20;
  int clock = 1755;          // MHz
  double dram_rate = 3.0e6;  // bytes per microsecond

  double l2_rate() const;
  // Dense matrix products with sums in fp32.
  double tensor_rate(DType operands) const;
  // Whether matrix products take 8-bit floats (E4M3FN, E5M2) as they are.
  bool multiplies_codes() const;
  // The same of 16-bit operands by instructions of single warps (mma.sync), the widest of which are
  // those of sm_80.
  double warp_tensor_rate() const;
  // The same of 8-bit integers with sums in int32.
  double warp_integer_rate() const;
  // Whether a kernel may start while those before it still run (programmatic dependent launch).
  bool starts_early() const { return architecture >= 90; }
  double scalar_rate() const;   // fp32 on the scalar units
  double special_rate() const;  // exponentials and the like
  // Of cycles of a multiprocessor.
  double microseconds(double cycles) const { return cycles / clock; }
};

inline constexpr int kBlockReserved = 1024;
// Threads, and registers, of a multiprocessor.
inline constexpr int kThreadsOfMultiprocessor = 2048, kRegistersOfMultiprocessor = 65536;
inline constexpr int kBlocksOfMultiprocessor = 32;
// Lanes of a multiprocessor that take an instruction at once.
inline constexpr double kLanes = 128;
// The device starts the blocks of a kernel one after the other, whatever they do: microseconds.
inline constexpr double kBlockStart = 0.00119;
// What one more kernel of a CUDA graph costs beside its work, in microseconds.
inline constexpr double kLaunchTime = 2.5;
// The share of the table's peak that large products reach.
inline constexpr double kTensorEfficiency = 0.7;
// How much of that passes while the kernel before it ends.
inline constexpr double kLaunchOverlap = 1.6;
// The share of the data sheet's bandwidth of memory that a copy reaches.
inline constexpr double kMemoryEfficiency = 0.9;

struct NamedMachine {
  std::string_view name;     // as NVRTC calls the architecture: "sm_90a"
  std::string_view product;  // the GPU whose numbers these are
  Machine machine;
};
std::span<const NamedMachine> known_machines();
// The row of the architecture, or of the newest one that is not newer.
const Machine& machine_like(int architecture);

}  // namespace redfuser::select
