// The functions of src/device that hold one PTX instruction each, for the host, with the results
// that NVIDIA's PTX ISA states.
#pragma once

#include <mutex>
#include <vector>

#include "emulated_cuda/language.h"

namespace emulated {

inline float half_to_float(unsigned short bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline unsigned short float_to_half(float x) {
  return std::bit_cast<unsigned short>(static_cast<_Float16>(x));
}
inline float bfloat_to_float(unsigned short bits) {
  return std::bit_cast<float>(static_cast<unsigned>(bits) << 16);
}
inline unsigned short float_to_bfloat(float x) {
  const auto bits = std::bit_cast<unsigned>(x);
  if (x != x) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// Halves of a word.
struct Half {
  static float get(unsigned short bits) { return half_to_float(bits); }
  static unsigned short put(float x) { return float_to_half(x); }
};
struct Bfloat {
  static float get(unsigned short bits) { return bfloat_to_float(bits); }
  static unsigned short put(float x) { return float_to_bfloat(x); }
};
template <class Format>
float part(unsigned word, int i) {
  return Format::get(static_cast<unsigned short>(word >> 16 * i));
}
template <class Format>
unsigned pack(float low, float high) {
  return static_cast<unsigned>(Format::put(high)) << 16 | Format::put(low);
}
template <class Format>
unsigned fma_parts(unsigned a, unsigned b, unsigned c) {
  const auto sum = [&](int i) {
    const double exact = static_cast<double>(part<Format>(a, i)) * part<Format>(b, i);
    return static_cast<float>(exact + part<Format>(c, i));
  };
  return pack<Format>(sum(0), sum(1));
}

template <class T>
T& shared(unsigned address) {
  if (address % sizeof(T) != 0) std::abort();
  return *reinterpret_cast<T*>(host.pointer_to(address));
}

// Copies to shared memory that are done where the thread waits for them.
struct Copy {
  void* to;
  const void* from;
  int width, bytes, group;
};
struct Copies {
  std::vector<Copy> waiting;
  int group = 0;
};
inline thread_local std::vector<Copies> copies(1024);

inline void copy_later(void* to, const void* from, int width, int bytes) {
  if (reinterpret_cast<uintptr_t>(to) % width != 0 ||
      (bytes > 0 && reinterpret_cast<uintptr_t>(from) % width != 0)) {
    std::abort();
  }
  Copies& own = copies[current->number];
  own.waiting.push_back({to, from, width, bytes, own.group});
}
inline void await_copies(int pending) {
  Copies& own = copies[current->number];
  size_t done = 0;
  for (; done < own.waiting.size() && own.waiting[done].group < own.group - pending; ++done) {
    const Copy& copy = own.waiting[done];
    std::memset(copy.to, 0, static_cast<size_t>(copy.width));
    if (copy.bytes > 0) std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
  }
  own.waiting.erase(own.waiting.begin(), own.waiting.begin() + static_cast<long>(done));
}
inline void start_thread() { copies[current->number] = {}; }

struct MatrixRows {
  unsigned address;
  unsigned* to;
};
// Four 8x8 matrices of 16-bit elements, whose rows are at the addresses of 8 lanes each.
template <bool Transposed>
void load_matrices(void** operands, int) {
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      const auto element = [&](int row, int column) {
        const unsigned address = static_cast<MatrixRows*>(operands[8 * m + row])->address;
        if (address % 16 != 0) std::abort();
        return static_cast<unsigned>(shared<unsigned short>(address + 2 * column));
      };
      const int one = lane / 4, two = lane % 4 * 2;
      static_cast<MatrixRows*>(operands[lane])->to[m] =
          Transposed ? element(two, one) | element(two + 1, one) << 16
                     : element(one, two) | element(one, two + 1) << 16;
    }
  }
}

struct MmaOperands {
  void* c;
  const unsigned* a;
  unsigned b[2];
};
inline const MmaOperands& of_lane(void** operands, int lane) {
  return *static_cast<MmaOperands*>(operands[lane]);
}
// c += a · b, of 16 rows, 8 columns and K terms.
template <class Sum, int K, class Left, class Right>
void multiply(void** operands, Left left, Right right) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      Sum* c = static_cast<Sum*>(of_lane(operands, row % 8 * 4 + column / 2).c);
      Sum& sum = c[row / 8 * 2 + column % 2];
      for (int k = 0; k < K; ++k) {
        if constexpr (std::is_same_v<Sum, int>) {
          sum = static_cast<int>(static_cast<unsigned>(sum) +
                                 static_cast<unsigned>(left(row, k) * right(k, column)));
        } else {
          sum += left(row, k) * right(k, column);
        }
      }
    }
  }
}
template <class Format>
void mma_16(void** operands, int) {
  multiply<float, 16>(
      operands,
      [&](int row, int k) {
        const MmaOperands& from = of_lane(operands, row % 8 * 4 + k % 8 / 2);
        return part<Format>(from.a[k / 8 * 2 + row / 8], k % 2);
      },
      [&](int k, int column) {
        const MmaOperands& from = of_lane(operands, column * 4 + k % 8 / 2);
        return part<Format>(from.b[k / 8], k % 2);
      });
}
inline float tf32(unsigned bits) { return std::bit_cast<float>(bits & 0xffffe000); }
inline void mma_tf32(void** operands, int) {
  multiply<float, 8>(
      operands,
      [&](int row, int k) {
        return tf32(of_lane(operands, row % 8 * 4 + k % 4).a[k / 4 * 2 + row / 8]);
      },
      [&](int k, int column) { return tf32(of_lane(operands, column * 4 + k % 4).b[k / 4]); });
}
template <class A, class B>
void mma_bytes(void** operands, int) {
  multiply<int, 32>(
      operands,
      [&](int row, int k) {
        const MmaOperands& from = of_lane(operands, row % 8 * 4 + k % 16 / 4);
        return static_cast<int>(static_cast<A>(from.a[k / 16 * 2 + row / 8] >> k % 4 * 8));
      },
      [&](int k, int column) {
        const MmaOperands& from = of_lane(operands, column * 4 + k % 16 / 4);
        return static_cast<int>(static_cast<B>(from.b[k / 16] >> k % 4 * 8));
      });
}
inline void run_mma(void* c, const unsigned* a, unsigned b0, unsigned b1, Act act) {
  MmaOperands own{c, a, {b0, b1}};
  host.with_warp(0xffffffff, &own, act);
}

// The code of a format with so many exponent bits, saturated.
template <int ExponentBits>
unsigned code_of_byte(float x) {
  constexpr int kMantissa = 7 - ExponentBits, kBias = (1 << (ExponentBits - 1)) - 1;
  const unsigned sign = std::signbit(x) ? 0x80 : 0;
  if (x != x) return 0x7f;
  if (x == 0) return sign;
  const float largest = ExponentBits == 4 ? 448.0f : 57344.0f;
  const float size = std::min(std::fabs(x), largest);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int least = std::max(exponent - 1, 1 - kBias);
  const auto steps = static_cast<unsigned>(
      std::nearbyint(std::ldexp(static_cast<double>(size), kMantissa - least)));
  const unsigned code = (static_cast<unsigned>(least + kBias - 1) << kMantissa) + steps;
  const unsigned most = ExponentBits == 4 ? 0x7e : 0x7b;
  return sign | std::min(code, most);
}

}  // namespace emulated

inline float ptx_half_to_float(unsigned short bits) { return emulated::half_to_float(bits); }
inline unsigned short ptx_float_to_half(float x) { return emulated::float_to_half(x); }
inline unsigned short ptx_float_to_bfloat(float x) { return emulated::float_to_bfloat(x); }
inline float ptx_exp2(float x) { return emulated::flushed(std::exp2(emulated::flushed(x))); }
inline float ptx_reciprocal(float x) { return emulated::flushed(1.0f / emulated::flushed(x)); }
inline void ptx_count_release(unsigned* counter) { atomicAdd(counter, 1u); }
inline unsigned ptx_load_acquire(const unsigned* counter) {
  emulated::host.yield();
  return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}
inline uint4 ptx_load_global(const void* from) { return *static_cast<const uint4*>(from); }
inline void ptx_prefetch(const void*) {}
inline uint4 ptx_load_once(const uint4* from) {
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) std::abort();
  return *from;
}
inline uint4 ptx_load_in_order(const uint4* from) { return ptx_load_once(from); }
inline unsigned ptx_load_in_order(const unsigned* from) { return *from; }
inline unsigned short ptx_load_in_order(const unsigned short* from) { return *from; }
inline unsigned ptx_load_in_order(const unsigned char* from) { return *from; }
inline unsigned ptx_pack_half(float low, float high) {
  return emulated::pack<emulated::Half>(low, high);
}
inline unsigned ptx_pack_bfloat(float low, float high) {
  return emulated::pack<emulated::Bfloat>(low, high);
}
inline void ptx_copy_async(void* shared, const void* global, bool valid) {
  emulated::copy_later(shared, global, 16, valid ? 16 : 0);
}
inline void ptx_copy_async_passing(void* shared, const void* global) {
  emulated::copy_later(shared, global, 16, 16);
}
inline void ptx_copy_async_part(void* shared, const void* global, int bytes) {
  emulated::copy_later(shared, global, 16, bytes);
}
template <int Width>
void ptx_copy_async_narrow(void* shared, const void* global, int bytes) {
  emulated::copy_later(shared, global, Width, bytes);
}
inline void ptx_copy_commit() { ++emulated::copies[emulated::current->number].group; }
template <int Pending>
void ptx_copy_wait() {
  emulated::await_copies(Pending);
}
inline void ptx_load_matrix(unsigned (&r)[4], unsigned shared) {
  emulated::MatrixRows own{shared, r};
  emulated::host.with_warp(0xffffffff, &own, emulated::load_matrices<false>);
}
inline void ptx_load_matrix_transposed(unsigned (&r)[4], unsigned shared) {
  emulated::MatrixRows own{shared, r};
  emulated::host.with_warp(0xffffffff, &own, emulated::load_matrices<true>);
}
inline void ptx_mma_half(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::run_mma(c, a, b0, b1, emulated::mma_16<emulated::Half>);
}
inline void ptx_mma_bfloat(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::run_mma(c, a, b0, b1, emulated::mma_16<emulated::Bfloat>);
}
inline void ptx_mma_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::run_mma(c, a, b0, b1, emulated::mma_tf32);
}
inline float ptx_round_to_tf32(float x) {
  return std::bit_cast<float>((std::bit_cast<unsigned>(x) + 0x1000) & 0xffffe000);
}
#define RF_INTEGER_MMA(A, B, A_TYPE, B_TYPE)                                         \
  template <>                                                                        \
  struct IntegerMma<A, B> {                                                          \
    static void add(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { \
      emulated::run_mma(c, a, b0, b1, emulated::mma_bytes<A, B>);                    \
    }                                                                                \
  }
inline unsigned ptx_add_halves(unsigned a, unsigned b) {
  return emulated::fma_parts<emulated::Half>(a, 0x3c003c00, b);
}
inline unsigned ptx_multiply_halves(unsigned a, unsigned b) {
  return emulated::fma_parts<emulated::Half>(a, b, 0x80008000);
}
inline unsigned ptx_fma_halves(unsigned a, unsigned b, unsigned c) {
  return emulated::fma_parts<emulated::Half>(a, b, c);
}
inline unsigned ptx_fma_bfloats(unsigned a, unsigned b, unsigned c) {
  return emulated::fma_parts<emulated::Bfloat>(a, b, c);
}
inline unsigned ptx_float_to_e4m3(float x) { return emulated::code_of_byte<4>(x); }
inline unsigned ptx_float_to_e5m2(float x) { return emulated::code_of_byte<5>(x); }
inline unsigned short ptx_e4m3_to_half(unsigned char code) {
  const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
  float size = exponent == 0
                   ? std::ldexp(static_cast<float>(mantissa), -9)
                   : std::ldexp(static_cast<float>(8 + mantissa), static_cast<int>(exponent) - 10);
  if ((code & 0x7f) == 0x7f) size = std::nanf("");
  return emulated::float_to_half((code & 0x80) != 0 ? -size : size);
}
inline unsigned ptx_count(unsigned* counter, unsigned most) {
  return changed(counter, [&](unsigned before) { return before >= most ? 0u : before + 1; });
}
inline bool ptx_elect() {
  __syncwarp();
  return (emulated::current->number & 31) == 0;
}
inline float max_of(float a, float b) {
  return a != a ? a : b != b ? b : a > b ? a : a < b ? b : std::signbit(a) ? b : a;
}
inline float min_of(float a, float b) {
  return a != a ? a : b != b ? b : a < b ? a : a > b ? b : std::signbit(a) ? a : b;
}
inline void ptx_launch_dependents() {}
inline void ptx_await_launches() {}
