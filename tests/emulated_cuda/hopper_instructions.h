// Instructions of sm_90a for the host: clusters, barriers in shared memory, TMA, warpgroup
// products.
#pragma once

#include <mutex>

#include "emulated_cuda/instructions.h"
#include "emulated_cuda/tensor_map.h"
#include "emulated_cuda/warpgroup_products.h"

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

inline void copy_box(unsigned to, const void* map, unsigned barrier, const int* at, int rank) {
  TensorMapBits bits;
  std::memcpy(&bits, map, sizeof bits);
  if (static_cast<int>(bits.rank) != rank || to % 128 != 0 || bits.windows) std::abort();
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

// `at`: the channel, the place of the first window, and its image; `tap`: within windows.
inline void copy_windows(unsigned to, const void* map, unsigned barrier, std::vector<int> at,
                         const std::vector<int>& tap) {
  TensorMapBits bits;
  std::memcpy(&bits, map, sizeof bits);
  const size_t spatial = tap.size();
  if (bits.rank != spatial + 2 || to % 128 != 0 || !bits.windows) std::abort();
  unsigned n = 0;
  for (int window = 0; window < bits.box[1]; ++window) {
    for (int channel = 0; channel < bits.box[0]; ++channel, ++n) {
      int64_t offset = 0;
      bool inside = true;
      for (size_t i = 0; i < bits.rank; ++i) {
        const bool along = i > 0 && i <= spatial;
        const int64_t place = at[i] + (i == 0 ? channel : along ? tap[i - 1] : 0);
        inside = inside && place >= 0 && place < static_cast<int64_t>(bits.dims[i]);
        offset += place * static_cast<int64_t>(i == 0 ? 2 : bits.strides[i - 1]);
      }
      auto& element = shared<unsigned short>(swizzled(to + 2 * n, bits.swizzle));
      element = inside ? *reinterpret_cast<const unsigned short*>(bits.address + offset) : 0;
    }
    size_t axis = 0;
    for (; axis < spatial; ++axis) {
      at[axis + 1] += bits.steps[axis];
      if (at[axis + 1] < static_cast<int64_t>(bits.dims[axis + 1]) + bits.upper[axis]) break;
      at[axis + 1] = bits.lower[axis];
    }
    if (axis == spatial) ++at[spatial + 1];
  }
  complete_bytes(barrier, static_cast<int>(2 * n));
}

}  // namespace emulated

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
inline void ptx_copy_windows(unsigned shared, const TensorMap& map, unsigned barrier, int channel,
                             int x, int y, int image, int dx, int dy) {
  emulated::copy_windows(shared, &map, barrier, {channel, x, y, image}, {dx, dy});
}
inline void ptx_copy_windows(unsigned shared, const TensorMap& map, unsigned barrier, int channel,
                             int x, int y, int z, int image, int dx, int dy, int dz) {
  emulated::copy_windows(shared, &map, barrier, {channel, x, y, z, image}, {dx, dy, dz});
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
