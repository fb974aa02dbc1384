// Vector access of src/device/types.cuh, compiled for the host: a group is loaded and stored at any
// multiple of its own size, and its neighbours stay as they are.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

// Functions of device headers, for the host.
#define __device__
#define __forceinline__ inline
namespace device {
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
// Values of the test are integers that 16 bits hold.
inline float ptx_half_to_float(unsigned short bits) { return bits; }
inline unsigned short ptx_float_to_half(float x) { return static_cast<unsigned short>(x); }
inline unsigned short ptx_float_to_bfloat(float x) { return static_cast<unsigned short>(x); }
inline float __uint_as_float(unsigned bits) { return static_cast<float>(bits >> 16); }
#include "device/types.cuh"
}  // namespace device
#undef __device__
#undef __forceinline__

namespace redfuser::codegen_tests {
namespace {

template <typename T, int kWidth>
void expect_neighbours_stay() {
  constexpr int kGroups = 4;
  using Value = device::ValueOf<T>;
  for (const bool vector : {true, false}) {
    for (int group = 0; group < kGroups; ++group) {
      alignas(64) T memory[kGroups * kWidth];
      for (int i = 0; i < kGroups * kWidth; ++i) memory[i] = device::Element<T>::put(Value(i));
      Value values[kWidth];
      device::load_group<kWidth>(values, memory, group * kWidth, kWidth, vector);
      for (int v = 0; v < kWidth; ++v) {
        EXPECT_EQ(values[v], Value(group * kWidth + v))
            << "element " << v << " of group " << group << " of " << kWidth;
        values[v] = Value(100 - v);
      }
      device::store_group<kWidth>(memory, group * kWidth, values, kWidth, vector);
      for (int i = 0; i < kGroups * kWidth; ++i) {
        const bool own = i / kWidth == group;
        EXPECT_EQ(device::Element<T>::get(memory[i]), Value(own ? 100 - i % kWidth : i))
            << "element " << i << " after group " << group;
      }
    }
  }
}

template <typename T, int... kWidths>
void of_widths() {
  (expect_neighbours_stay<T, kWidths>(), ...);
}

TEST(VectorAccess, NeighboursStay) {
  of_widths<signed char, 1, 2, 8, 16>();
  of_widths<device::half_t, 1, 2, 8>();
  of_widths<device::bfloat_t, 1, 4>();
  of_widths<float, 1, 2, 4, 8>();
  of_widths<double, 1, 2>();
  of_widths<long long, 1>();
}

}  // namespace
}  // namespace redfuser::codegen_tests
