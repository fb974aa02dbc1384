// Instructions of sm_90a for the host: clusters, barriers in shared memory, TMA, warpgroup
// products.
#pragma once

#include "emulated_cuda/instructions.h"
#include "emulated_cuda/tensor_map.h"

struct TensorMap;

namespace emulated {

// A barrier of shared memory: the bits are this project's own.
struct SharedBarrier {
  uint16_t expected : 15, phase : 1;
  int16_t pending;
  int32_t bytes;
};
static_assert(sizeof(SharedBarrier) == 8);

template <class Change>
void change_barrier(unsigned address, Change change) {
  auto& barrier = *reinterpret_cast<SharedBarrier*>(host.pointer_to(address));
  const std::lock_guard lock(*static_cast<std::mutex*>(host.mutex()));
  change(barrier);
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  barrier.phase ^= 1;
  barrier.pending = static_cast<int16_t>(barrier.expected);
}
inline void complete_bytes(unsigned address, int bytes) {
  change_barrier(address, [&](SharedBarrier& barrier) { barrier.bytes -= bytes; });
}

// Bits 4 to 6 of an address change with bits 7 to 9, of a swizzle of 128 bytes.
inline unsigned swizzled(unsigned address, int mode) {
  const unsigned mask = mode == 3 ? 7 : mode == 2 ? 3 : mode == 1 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

inline void copy_box(unsigned to, const void* map, unsigned barrier, const int* at, int rank) {
  TensorMapBits bits;
  std::memcpy(&bits, map, sizeof bits);
  if (static_cast<int>(bits.rank) != rank || to % 128 != 0) std::abort();
  unsigned count = 1;
  for (int i = 0; i < rank; ++i) count *= bits.box[i];
  for (unsigned n = 0; n < count; ++n) {
    unsigned rest = n;
    int64_t offset = 0;
    bool inside = true;
    for (int i = 0; i < rank; ++i) {
      const int64_t place = at[i] + static_cast<int64_t>(rest % bits.box[i]);
      rest /= bits.box[i];
      inside = inside && place >= 0 && place < static_cast<int64_t>(bits.dims[i]);
      offset += place * static_cast<int64_t>(i == 0 ? 2 : bits.strides[i - 1]);
    }
    auto& element = shared<unsigned short>(swizzled(to + 2 * n, bits.swizzle));
    element = inside ? *reinterpret_cast<const unsigned short*>(bits.address + offset) : 0;
  }
  complete_bytes(barrier, static_cast<int>(2 * count));
}

// A product of the warpgroup: 64 rows, N columns, 16 terms.
struct GroupProduct {
  float* d;
  const unsigned* registers;  // of a, or null
  unsigned long long a, b;
  bool add;
};
// An element of an operand in shared memory: row of the product, or column, and term. ByTerms: rows
// in memory are of the contracted axis (MN-major).
template <class Format, bool ByTerms>
float operand(unsigned long long descriptor, int row, int k) {
  const auto field = [&](int bit) {
    return static_cast<unsigned>(descriptor >> bit & 0x3fff) << 4;
  };
  const unsigned leading = field(16), groups = field(32);
  if (descriptor >> 62 != 1) std::abort();
  const unsigned address =
      field(0) +
      (ByTerms ? static_cast<unsigned>(row / 64) * leading + static_cast<unsigned>(k / 8) * groups +
                     static_cast<unsigned>(k % 8 * 128 + row % 64 * 2)
               : static_cast<unsigned>(row / 8) * groups +
                     static_cast<unsigned>(row % 8 * 128 + k * 2));
  return Format::get(shared<unsigned short>(swizzled(address, 3)));
}
template <class Format, int N, bool AByTerms, bool BByTerms>
void multiply_group(void** operands, int) {
  static thread_local float a[64][16], b[16][N];
  const auto of = [&](int thread) -> const GroupProduct& {
    return *static_cast<GroupProduct*>(operands[thread]);
  };
  for (int row = 0; row < 64; ++row) {
    for (int k = 0; k < 16; ++k) {
      const GroupProduct& from = of(row / 16 * 32 + row % 8 * 4 + k % 8 / 2);
      a[row][k] = from.registers != nullptr
                      ? part<Format>(from.registers[k / 8 * 2 + row / 8 % 2], k % 2)
                      : operand<Format, AByTerms>(from.a, row, k);
    }
  }
  for (int column = 0; column < N; ++column) {
    for (int k = 0; k < 16; ++k) b[k][column] = operand<Format, BByTerms>(of(0).b, column, k);
  }
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < N; ++column) {
      const GroupProduct& to = of(row / 16 * 32 + row % 8 * 4 + column % 8 / 2);
      float& d = to.d[column / 8 * 4 + row / 8 % 2 * 2 + column % 2];
      float sum = to.add ? d : 0;
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      d = sum;
    }
  }
}
template <class Format, int N, bool AByTerms, bool BByTerms>
void run_group(float* d, const unsigned* registers, unsigned long long a, unsigned long long b,
               bool add) {
  GroupProduct own{d, registers, a, b, add};
  host.with_warpgroup(&own, multiply_group<Format, N, AByTerms, BByTerms>);
}

template <class T>
struct FormatOf;

}  // namespace emulated

struct half_t;
struct bfloat_t;
template <>
struct emulated::FormatOf<half_t> {
  using Type = Half;
};
template <>
struct emulated::FormatOf<bfloat_t> {
  using Type = Bfloat;
};

inline unsigned ptx_cluster_rank() { return emulated::host.cluster_rank(); }
inline void ptx_cluster_arrive() { emulated::host.cluster_arrive(); }
inline void ptx_cluster_arrive_relaxed() { emulated::host.cluster_arrive(); }
inline void ptx_cluster_wait() { emulated::host.cluster_wait(); }
inline unsigned ptx_map_shared(unsigned address, unsigned rank) {
  return (address & 0x7ffffff) | (rank + 1) << 27;
}
inline unsigned long long ptx_load_cluster(unsigned address) {
  return emulated::shared<unsigned long long>(address);
}
inline float ptx_load_cluster_float(unsigned address) { return emulated::shared<float>(address); }
inline int ptx_load_cluster_int(unsigned address) { return emulated::shared<int>(address); }
inline void ptx_load_cluster(float (&to)[4], unsigned address) {
  for (unsigned i = 0; i < 4; ++i) to[i] = emulated::shared<float>(address + 4 * i);
}

inline void ptx_barrier_init(unsigned barrier, unsigned arrivals) {
  auto& bits = *reinterpret_cast<emulated::SharedBarrier*>(emulated::host.pointer_to(barrier));
  bits.expected = static_cast<uint16_t>(arrivals), bits.phase = 0, bits.bytes = 0;
  bits.pending = static_cast<int16_t>(arrivals);
}
inline void ptx_barrier_init_fence() {}
inline void ptx_barrier_arrive(unsigned barrier) {
  emulated::change_barrier(barrier, [](auto& bits) { --bits.pending; });
}
inline void ptx_barrier_expect(unsigned barrier, unsigned bytes) {
  emulated::change_barrier(
      barrier, [&](auto& bits) { --bits.pending, bits.bytes += static_cast<int>(bytes); });
}
inline bool ptx_barrier_try_wait(unsigned barrier, unsigned parity) {
  {
    const std::lock_guard lock(*static_cast<std::mutex*>(emulated::host.mutex()));
    const auto& bits =
        *reinterpret_cast<emulated::SharedBarrier*>(emulated::host.pointer_to(barrier));
    if (bits.phase != (parity & 1)) return true;
  }
  emulated::host.yield();
  return false;
}
template <class T>
void store_counted(unsigned address, T value, unsigned barrier) {
  emulated::shared<T>(address) = value;
  emulated::complete_bytes(barrier, sizeof(T));
}
inline void ptx_store_async(unsigned address, unsigned long long bits, unsigned barrier) {
  store_counted(address, bits, barrier);
}
inline void ptx_store_async(unsigned address, float value, unsigned barrier) {
  store_counted(address, value, barrier);
}
inline void ptx_store_async(unsigned address, uint4 bits, unsigned barrier) {
  store_counted(address, bits, barrier);
}

template <class... At>
void ptx_copy_box(unsigned shared, const TensorMap& map, unsigned barrier, At... at) {
  const int places[] = {at...};
  emulated::copy_box(shared, &map, barrier, places, sizeof...(At));
}
inline void ptx_fence_global_copies() {}
inline void ptx_prefetch_map(const TensorMap&) {}
inline void ptx_async_proxy_fence() {}
inline void ptx_named_sync(int id, int threads) {
  emulated::host.meet(id, static_cast<unsigned>(threads), false, true);
}
inline bool ptx_named_all(int id, int threads, bool vote) {
  return emulated::host.meet(id, static_cast<unsigned>(threads), vote, true) ==
         static_cast<unsigned>(threads);
}
inline void ptx_named_arrive(int id, int threads) {
  emulated::host.meet(id, static_cast<unsigned>(threads), false, false);
}
template <int Registers>
void ptx_give_registers() {}
template <int Registers>
void ptx_take_registers() {}
inline void ptx_product_fence() {}
inline void ptx_product_commit() {}
template <int Pending>
void ptx_product_wait() {}
template <int N>
void pin_registers(float (&)[N][4]) {}
inline unsigned opaque_address(unsigned address) { return address; }

#define RF_PRODUCT(T, TYPE, N, M, R0, R1, R2, R3, R4, R5)                                    \
  template <>                                                                                \
  struct Product<T, N> {                                                                     \
    using F = typename emulated::FormatOf<T>::Type;                                          \
    using Descriptor = unsigned long long;                                                   \
    static void score(float (&d)[N / 8][4], Descriptor a, Descriptor b, int add) {           \
      emulated::run_group<F, N, false, false>(d[0], nullptr, a, b, add);                     \
    }                                                                                        \
    static void value(float (&d)[N / 8][4], const unsigned (&a)[4], Descriptor b, int add) { \
      emulated::run_group<F, N, false, true>(d[0], a, 0, b, add);                            \
    }                                                                                        \
    static void value(float (&d)[N / 8][4], Descriptor a, Descriptor b, int add) {           \
      emulated::run_group<F, N, false, true>(d[0], nullptr, a, b, add);                      \
    }                                                                                        \
    static void across(float (&d)[N / 8][4], Descriptor a, Descriptor b, int add) {          \
      emulated::run_group<F, N, true, false>(d[0], nullptr, a, b, add);                      \
    }                                                                                        \
  }
#define RF_EIGHT(NAME, TYPE, ACROSS)                                                       \
  static void NAME(float(&d)[1][4], unsigned long long a, unsigned long long b, int add) { \
    using F = std::conditional_t<TYPE[0] == 'f', emulated::Half, emulated::Bfloat>;        \
    emulated::run_group<F, 8, ACROSS[0] == '1', false>(d[0], nullptr, a, b, add);          \
  }
#define RF_TILE_PRODUCT(T, TYPE, BY_ROWS, TRANSPOSED)                                \
  template <>                                                                        \
  struct TileProduct<T, BY_ROWS> {                                                   \
    static void add(float (&d)[32][4], unsigned long long a, unsigned long long b) { \
      using F = typename emulated::FormatOf<T>::Type;                                \
      emulated::run_group<F, 256, false, !(BY_ROWS)>(d[0], nullptr, a, b, true);     \
    }                                                                                \
  }
