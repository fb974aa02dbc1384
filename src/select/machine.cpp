#include "select/machine.h"

#include <algorithm>

namespace redfuser::select {
namespace {

// Of a multiprocessor and clock: NVIDIA, architecture white papers, peak rates divided by
// multiprocessors and boost clock.
struct Rates {
  int architecture;
  int tensor16;  // operations on 16-bit operands with fp32 sums
  int tensor8;   // the same on 8-bit floats; 0: none
  int integer8;  // on 8-bit integers with int32 sums
  int scalar;    // fp32 operations
  int special;
  int l2_bytes;
};
constexpr Rates kRates[] = {
    {80, 2048, 0, 4096, 128, 16, 24},       {86, 512, 0, 1024, 256, 16, 16},
    {89, 1024, 2048, 2048, 256, 16, 16},    {90, 4096, 8192, 8192, 256, 16, 22},
    {100, 8192, 16384, 16384, 256, 16, 24}, {120, 512, 1024, 1024, 256, 16, 16},
};

// Those of the newest architecture that is not newer.
const Rates& rates_of(int architecture) {
  const Rates* found = &kRates[0];
  for (const Rates& rates : kRates) {
    if (rates.architecture <= architecture) found = &rates;
  }
  return *found;
}

// The widest instructions of single warps on 16-bit operands, and the share that they reach.
constexpr int kWidestWarp = 2048;
constexpr double kWarpEfficiency = 0.946;

constexpr int kKilo = 1024;
constexpr int64_t kMega = int64_t{1} << 20;
// Multiprocessors and shared memory of a block: CUDA C++ Programming Guide, "Technical
// Specifications per Compute Capability"; cache, clock and bandwidth: the products' data sheets.
constexpr NamedMachine kMachines[] = {
    {"sm_80", "A100", {80, 108, 163 * kKilo, 40 * kMega, 1410, kMemoryEfficiency * 2.04e6}},
    {"sm_86", "A10", {86, 72, 99 * kKilo, 6 * kMega, 1695, kMemoryEfficiency * 0.6e6}},
    {"sm_89", "L40S", {89, 142, 99 * kKilo, 96 * kMega, 2520, kMemoryEfficiency * 0.864e6}},
    {"sm_90a", "H100", {90, 132, 227 * kKilo, 50 * kMega, 1755, kMemoryEfficiency * 3.35e6}},
    {"sm_100a", "B200", {100, 148, 227 * kKilo, 126 * kMega, 1850, kMemoryEfficiency * 8.0e6}},
    {"sm_120a", "RTX 5090", {120, 170, 99 * kKilo, 96 * kMega, 2400, kMemoryEfficiency * 1.79e6}},
};

}  // namespace

double Machine::l2_rate() const {
  return 1.0 * rates_of(architecture).l2_bytes * multiprocessors * clock;
}

double Machine::tensor_rate(DType operands) const {
  const Rates& rates = rates_of(architecture);
  const bool codes = is_low_bit_float(operands) && multiplies_codes();
  const double rate =
      kTensorEfficiency * (codes ? rates.tensor8 : rates.tensor16) * multiprocessors * clock;
  return size_of(operands) <= 2 ? rate : rate / 2;
}

bool Machine::multiplies_codes() const { return rates_of(architecture).tensor8 > 0; }

double Machine::warp_tensor_rate() const {
  const int rate = std::min(rates_of(architecture).tensor16, kWidestWarp);
  return kWarpEfficiency * rate * multiprocessors * clock;
}

double Machine::warp_integer_rate() const {
  const int rate = std::min(rates_of(architecture).integer8, 2 * kWidestWarp);
  return kWarpEfficiency * rate * multiprocessors * clock;
}

double Machine::scalar_rate() const {
  return 1.0 * rates_of(architecture).scalar * multiprocessors * clock;
}

double Machine::special_rate() const {
  return 1.0 * rates_of(architecture).special * multiprocessors * clock;
}

std::span<const NamedMachine> known_machines() { return kMachines; }

const Machine& machine_like(int architecture) {
  const Machine* found = &kMachines[0].machine;
  for (const NamedMachine& known : kMachines) {
    if (known.machine.architecture <= architecture) found = &known.machine;
  }
  return *found;
}

}  // namespace redfuser::select
