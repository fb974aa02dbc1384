// CUDA's functions of memory that other threads see, for the host.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "emulated_cuda/language.h"

// Memory that other blocks see.
template <class T, class Change>
T changed(T* to, Change change) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  auto* bits = reinterpret_cast<Bits*>(to);
  Bits before = __atomic_load_n(bits, __ATOMIC_SEQ_CST);
  for (;;) {
    const Bits after = std::bit_cast<Bits>(change(std::bit_cast<T>(before)));
    if (__atomic_compare_exchange_n(bits, &before, after, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return std::bit_cast<T>(before);
    }
  }
}
template <class T, class U>
T atomicAdd(T* to, U value) {
  return changed(to, [&](T before) { return static_cast<T>(before + static_cast<T>(value)); });
}
template <class T, class U>
T atomicOr(T* to, U value) {
  return changed(to, [&](T before) { return static_cast<T>(before | static_cast<T>(value)); });
}
template <class T, class U>
T atomicExch(T* to, U value) {
  return changed(to, [&](T) { return static_cast<T>(value); });
}
template <class T, class U>
T atomicMax(T* to, U value) {
  return changed(to, [&](T before) { return std::max(before, static_cast<T>(value)); });
}
template <class T, class U>
T atomicMin(T* to, U value) {
  return changed(to, [&](T before) { return std::min(before, static_cast<T>(value)); });
}
template <class T, class U, class V>
T atomicCAS(T* to, U expected, V value) {
  return changed(to, [&](T before) {
    return before == static_cast<T>(expected) ? static_cast<T>(value) : before;
  });
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
template <class T>
T __ldg(const T* from) {
  return *from;
}
inline size_t __cvta_generic_to_shared(const void* pointer) {
  return emulated::host.address_of(pointer);
}
