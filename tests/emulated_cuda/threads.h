// CUDA's functions of the threads of a block and of a warp, for the host.
#pragma once

#include <atomic>

#include "emulated_cuda/language.h"

// Threads of a block.
inline void __syncthreads() { emulated::host.meet(0, 0, false, true); }
inline int __syncthreads_count(int vote) {
  return static_cast<int>(emulated::host.meet(0, 0, vote != 0, true));
}
inline int __syncthreads_or(int vote) { return __syncthreads_count(vote) > 0; }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Threads of a warp.
inline void __syncwarp(unsigned mask = 0xffffffff) {
  emulated::host.with_warp(mask, nullptr, nullptr);
}
template <class T>
struct Shuffle {
  T value, result;
  int source;
};
template <class T>
T shuffled(unsigned mask, T value, int source) {
  Shuffle<T> own{value, value, source};
  emulated::host.with_warp(mask, &own, [](void** operands, int count) {
    for (int i = 0; i < count; ++i) {
      if (operands[i] == nullptr) continue;
      auto& to = *static_cast<Shuffle<T>*>(operands[i]);
      const int from = to.source & 31;
      if (operands[from] != nullptr) to.result = static_cast<Shuffle<T>*>(operands[from])->value;
    }
  });
  return own.result;
}
inline int lane_of_warp() { return static_cast<int>(emulated::current->number & 31); }
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return shuffled(mask, value, (lane_of_warp() & -width) + (source & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const int lane = lane_of_warp(), from = lane ^ bits;
  return shuffled(mask, value, from < (lane & -width) + width ? from : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int lane = lane_of_warp(), from = lane - static_cast<int>(by);
  return shuffled(mask, value, from >= (lane & -width) ? from : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int lane = lane_of_warp(), from = lane + static_cast<int>(by);
  return shuffled(mask, value, from < (lane & -width) + width ? from : lane);
}
template <class T, class Join>
T joined(unsigned mask, T value, Join) {
  Shuffle<T> own{value, value, 0};
  emulated::host.with_warp(mask, &own, [](void** operands, int count) {
    bool any = false;
    T all{};
    for (int i = 0; i < count; ++i) {
      if (operands[i] == nullptr) continue;
      const T next = static_cast<Shuffle<T>*>(operands[i])->value;
      all = any ? Join{}(all, next) : next;
      any = true;
    }
    for (int i = 0; i < count; ++i) {
      if (operands[i] != nullptr) static_cast<Shuffle<T>*>(operands[i])->result = all;
    }
  });
  return own.result;
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  return joined(mask, vote != 0 ? 1u << lane_of_warp() : 0u,
                [](unsigned a, unsigned b) { return a | b; });
}
inline int __all_sync(unsigned mask, int vote) {
  return joined(mask, vote != 0 ? 1 : 0, [](int a, int b) { return a & b; });
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
template <class T>
T __reduce_add_sync(unsigned mask, T value) {
  return joined(mask, value, [](T a, T b) { return a + b; });
}
template <class T>
T __reduce_min_sync(unsigned mask, T value) {
  return joined(mask, value, [](T a, T b) { return a < b ? a : b; });
}
template <class T>
T __reduce_max_sync(unsigned mask, T value) {
  return joined(mask, value, [](T a, T b) { return a > b ? a : b; });
}
