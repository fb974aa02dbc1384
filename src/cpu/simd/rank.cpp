// Elements that come before another one in an order by value.
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// NaN comes before every number, and nothing before NaN.
template <class T, bool kLargest>
RF_INLINE bool before(T x, T bound) {
  return !(kLargest ? x <= bound : x >= bound);
}

template <class T, bool kLargest>
RF_INLINE int64_t next_of(const T* x, int64_t begin, int64_t count, T bound) {
  constexpr int64_t kChunk = 64;
  for (; begin + kChunk <= count; begin += kChunk) {
    int32_t any = 0;
    for (int64_t i = 0; i < kChunk; ++i) any |= before<T, kLargest>(x[begin + i], bound) ? 1 : 0;
    if (any) break;
  }
  while (begin < count && !before<T, kLargest>(x[begin], bound)) ++begin;
  return begin;
}

template <class T>
int64_t next_before(const void* elements, int64_t begin, int64_t count, const void* bound,
                    bool largest) {
  const T* x = static_cast<const T*>(elements);
  const T limit = *static_cast<const T*>(bound);
  if (limit != limit) return count;
  return largest ? next_of<T, true>(x, begin, count, limit)
                 : next_of<T, false>(x, begin, count, limit);
}

}  // namespace

void add_rank(KernelTable& table) {
  table.next_before[static_cast<int>(Elem::F32)] = next_before<float>;
  table.next_before[static_cast<int>(Elem::F64)] = next_before<double>;
  table.next_before[static_cast<int>(Elem::I64)] = next_before<int64_t>;
  table.next_before[static_cast<int>(Elem::Bool)] = next_before<uint8_t>;
  table.next_before[static_cast<int>(Elem::U64)] = next_before<uint64_t>;
  table.next_before[static_cast<int>(Elem::I32)] = next_before<int32_t>;
}

}  // namespace redfuser::cpu::RF_ISA
