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

template <typename T, int V>
struct Group {
  using Type = T;
  static constexpr int kWidth = V;
};

template <typename G>
class VectorAccess : public ::testing::Test {};

using Groups =
    ::testing::Types<Group<signed char, 1>, Group<signed char, 2>, Group<signed char, 8>,
                     Group<signed char, 16>, Group<device::half_t, 1>, Group<device::half_t, 2>,
                     Group<device::half_t, 8>, Group<device::bfloat_t, 1>,
                     Group<device::bfloat_t, 4>, Group<float, 1>, Group<float, 2>, Group<float, 4>,
                     Group<float, 8>, Group<double, 1>, Group<double, 2>, Group<long long, 1>>;
TYPED_TEST_SUITE(VectorAccess, Groups);

TYPED_TEST(VectorAccess, NeighboursStay) {
  using T = typename TypeParam::Type;
  constexpr int kWidth = TypeParam::kWidth, kGroups = 4;
  using Value = device::ValueOf<T>;
  for (const bool vector : {true, false}) {
    for (int group = 0; group < kGroups; ++group) {
      alignas(64) T memory[kGroups * kWidth];
      for (int i = 0; i < kGroups * kWidth; ++i) memory[i] = device::Element<T>::put(Value(i));
      Value values[kWidth];
      device::load_group<kWidth>(values, memory, group * kWidth, kWidth, vector);
      for (int v = 0; v < kWidth; ++v) {
        EXPECT_EQ(values[v], Value(group * kWidth + v)) << "element " << v << " of group " << group;
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

}  // namespace
}  // namespace redfuser::codegen_tests
