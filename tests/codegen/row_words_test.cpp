// Groups of a row that starts at any address, as src/device/rows.cuh loads them, compiled for the
// host: each existing element is there, and nothing is read but the pieces of 16 bytes of the
// memory. (A read beyond them is an error of AddressSanitizer.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

// Functions of device headers, for the host.
#define __device__
#define __forceinline__ inline
namespace device_rows {
using std::max;
using std::min;
struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct ThreadIndex {
  unsigned x = 0;
};
constexpr ThreadIndex threadIdx;
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline uint4 ptx_load_once(const uint4* from) { return *from; }
inline void ptx_copy_async(uint4* to, const uint4* from, bool) { *to = *from; }
inline void ptx_copy_async_passing(uint4* to, const uint4* from) { *to = *from; }
inline void __syncwarp() {}
// The test converts nothing.
inline float __uint_as_float(unsigned) { return 0; }
inline float ptx_half_to_float(unsigned short) { return 0; }
inline unsigned short ptx_float_to_half(float) { return 0; }
inline unsigned short ptx_float_to_bfloat(float) { return 0; }
inline unsigned ptx_pack_half(float, float) { return 0; }
inline unsigned ptx_pack_bfloat(float, float) { return 0; }
#include "device/rows.cuh"
}  // namespace device_rows
#undef __device__
#undef __forceinline__

namespace redfuser::codegen_tests {
namespace {

constexpr int kLongest = 40;  // elements of the memory

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <typename T>
std::unique_ptr<T, Free> numbered(int length) {
  const size_t bytes = (static_cast<size_t>(length) * sizeof(T) + 15) / 16 * 16;
  std::unique_ptr<T, Free> memory(static_cast<T*>(std::aligned_alloc(16, bytes)));
  for (int i = 0; i < length; ++i) memory.get()[i] = static_cast<T>(7 * i + 3);
  return memory;
}

// load(words, from, low, valid) for the groups of N of every row in memory of every length, where
// the first group has up to N - 1 elements before the row.
template <typename T, int N, typename Load>
void visit_groups(const Load& load) {
  for (int length = 1; length <= kLongest; ++length) {
    const auto memory = numbered<T>(length);
    for (int start = 0; start < length; ++start) {
      const T* const row = memory.get() + start;
      const int extent = length - start;
      for (int first = 1 - N; first < extent; ++first) {
        unsigned words[device_rows::Words<T, N>::value];
        std::memset(words, 0xa5, sizeof(words));
        load(words, row + first, -first, extent - first);
        for (int v = std::max(-first, 0); v < N && first + v < extent; ++v) {
          ASSERT_EQ(device_rows::pick<T>(words, v), row[first + v])
              << length << " " << start << " " << first;
        }
      }
    }
  }
}

template <typename T, int N>
void expect_loaded() {
  SCOPED_TRACE(N);
  visit_groups<T, N>([](auto& words, const T* from, int low, int valid) {
    device_rows::load_words<T, N, false, true>(words, from, low, valid);
  });
  visit_groups<T, N>([](auto& words, const T* from, int low, int valid) {
    device_rows::load_words<T, N, false, false>(words, from, low, valid);
  });
  if constexpr (device_rows::Words<T, N>::value % 4 == 0) {
    visit_groups<T, N>([](auto& words, const T* from, int low, int valid) {
      device_rows::uint4 slot[device_rows::Words<T, N>::value / 4];
      std::memset(slot, 0xa5, sizeof(slot));
      device_rows::copy_to_shared<T, N, false, false, device_rows::Words<T, N>::value>(
          slot, 1, from, low, valid);
      device_rows::load_shared(words, slot, 1);
    });
  }
}

TEST(RowWords, BytesAreLoadedFromAnyAddress) {
  expect_loaded<uint8_t, 1>();
  expect_loaded<uint8_t, 4>();
  expect_loaded<uint8_t, 8>();
  expect_loaded<uint8_t, 16>();
}

TEST(RowWords, HalvesAreLoadedFromAnyAddress) {
  expect_loaded<uint16_t, 1>();
  expect_loaded<uint16_t, 2>();
  expect_loaded<uint16_t, 4>();
  expect_loaded<uint16_t, 8>();
  expect_loaded<uint16_t, 16>();
}

TEST(RowWords, FloatsAreLoadedFromAnyAddress) {
  expect_loaded<float, 1>();
  expect_loaded<float, 2>();
  expect_loaded<float, 4>();
  expect_loaded<float, 8>();
  expect_loaded<float, 12>();
}

TEST(RowWords, DoublesAreLoadedFromAnyAddress) {
  expect_loaded<double, 1>();
  expect_loaded<double, 2>();
  expect_loaded<double, 4>();
}

}  // namespace
}  // namespace redfuser::codegen_tests
