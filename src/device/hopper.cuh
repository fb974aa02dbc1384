// Tiles of two chained matrix products on sm_90a. A warpgroup has 64 rows; its fragments are those
// of attention.cuh for each of its four warps of 16 rows.
//
// A tile of R rows and C columns of 16-bit elements in shared memory is ⌈C / 64⌉ slabs of R rows of
// 128 bytes, as TMA writes boxes of 64 columns with 128-byte swizzle; slabs are aligned to 1024
// bytes.
#pragma once

#include "device/math.cuh"
#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"
#include "device/ptx_hopper.cuh"
#include "device/types.cuh"

constexpr int kSlabColumns = 64, kSlabRowBytes = 128, kSwizzleRows = 8;

__host__ __device__ constexpr int tile_bytes(int rows, int columns) {
  return (columns + kSlabColumns - 1) / kSlabColumns * rows * kSlabRowBytes;
}

// The wgmma descriptor of a matrix in shared memory. Groups of 8 rows are 1024 bytes apart; `slab`
// is the distance of slabs, used only if rows are of the contracted axis (MN-major).
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address, int slab) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  return kSwizzle128 | static_cast<unsigned long long>(kSwizzleRows * kSlabRowBytes >> 4) << 32 |
         static_cast<unsigned long long>(slab >> 4) << 16 | (address & 0x3ffff) >> 4;
}

// The operands' tensor maps, whose boxes are slabs.
struct AttentionTensors {
  const TensorMap& query;
  const TensorMap& key;
  const TensorMap& value;
};

// Prevents the compiler from moving reads and writes of a product's registers across its start and
// end.
template <int N>
__device__ __forceinline__ void pin_registers(float (&d)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) asm volatile("" : "+f"(d[n][x])::"memory");
  }
}

// Starts s = q · kᵀ for the warpgroup's 64 rows of q and Keys rows of k, over `Depth` columns.
template <typename T, int Depth, int Keys>
__device__ __forceinline__ void start_scores(float (&s)[Keys / 8][4], unsigned q, int q_slab,
                                             unsigned k, int k_slab = Keys * kSlabRowBytes) {
  const unsigned long long a = matrix_descriptor(q, q_slab);
  const unsigned long long b = matrix_descriptor(k, k_slab);
  ptx_product_fence();
#pragma unroll
  for (int d = 0; d < Depth; d += 16) {
    const int slab = d / kSlabColumns, inside = d % kSlabColumns * 2;
    Product<T, Keys>::score(s, a + ((slab * q_slab + inside) >> 4),
                            b + ((slab * k_slab + inside) >> 4), d > 0);
  }
  ptx_product_commit();
}

// Starts o += p · v for all Keys rows of v; p is packed by pack_weights.
template <typename T, int Columns, int Keys>
__device__ __forceinline__ void start_values(float (&o)[Columns / 8][4],
                                             const unsigned (&p)[Keys / 16][4], unsigned v) {
  const unsigned long long b = matrix_descriptor(v, Keys * kSlabRowBytes);
  ptx_product_fence();
#pragma unroll
  for (int n = 0; n < Keys; n += 16) {
    Product<T, Columns>::value(o, p[n / 16], b + (n * kSlabRowBytes >> 4), 1);
  }
  ptx_product_commit();
}

// Waits until at most `Pending` of the warpgroup's products are in flight.
template <int Pending, int N>
__device__ __forceinline__ void wait_products(float (&d)[N][4]) {
  ptx_product_wait<Pending>();
  pin_registers(d);
}

template <typename T, int Keys>
__device__ __forceinline__ void pack_weights(unsigned (&p)[Keys / 16][4],
                                             const float (&s)[Keys / 8][4]) {
#pragma unroll
  for (int n = 0; n < Keys / 16; ++n) {
    p[n][0] = pack(T{}, s[2 * n][0], s[2 * n][1]);
    p[n][1] = pack(T{}, s[2 * n][2], s[2 * n][3]);
    p[n][2] = pack(T{}, s[2 * n + 1][0], s[2 * n + 1][1]);
    p[n][3] = pack(T{}, s[2 * n + 1][2], s[2 * n + 1][3]);
  }
}

// tanh(x · c) for factor = 2 c log2(e), with an absolute error of 2^-22.
__device__ __forceinline__ float tanh_scaled(float x, float factor) {
  return fmaf(-2.0f, ptx_reciprocal(1.0f + ptx_exp2(x * factor)), 1.0f);
}

// exp(x · c - reference) is exp2(fmaf(x, scale, shift)).
struct Exponent {
  float scale, shift;
};

// Of scale = c log2(e). The product of a reference beyond 2^127 with log2(e) is not finite; with
// factors of 2^-100, elements of equal size have the power 1 and all others, at least 2^104 less,
// next to nothing.
__device__ __forceinline__ Exponent exponent_of(float reference, float scale) {
  const bool large = fabsf(reference) > 0x1p127f;
  return {large ? scale * 0x1p-100f : scale,
          reference * (large ? -0x1.715476p-100f : -0x1.715476p+0f)};
}

// s = Σ_i a_i (s · c)^(2 i + 1).
template <int Terms, int N>
__device__ __forceinline__ void odd_polynomial(float (&s)[N][4], const float (&a)[Terms], float c) {
  float scaled[Terms];
#pragma unroll
  for (int i = 0; i < Terms; ++i) {
    scaled[i] = a[i] * c;
    for (int power = 0; power < i; ++power) scaled[i] *= c * c;
  }
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      const float z = s[n][x] * s[n][x];
      float value = scaled[Terms - 1];
#pragma unroll
      for (int i = Terms - 1; i > 0; --i) value = fmaf(value, z, scaled[i - 1]);
      s[n][x] *= value;
    }
  }
}

// s = tanh(s · c). The special-function unit limits a tile of exponentials, then the instruction
// count: if all elements of the warp are within 0.7, or 0.25, a polynomial in x² fitted to tanh(x)
// / x (2^-21) is used instead.
template <int N>
__device__ __forceinline__ void tanh_tile(float (&s)[N][4], float c) {
  constexpr float kShortEnd = 0.25f, kLongEnd = 0.7f, kTwoLog2E = 2.885390082f;
  constexpr float kShort[] = {0.999999583f, -0.333218962f, 0.128414333f};
  constexpr float kLong[] = {0.9999997f, -0.33330348f, 0.13282493f, -0.050881166f, 0.013819454f};
  float largest[4] = {};
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) largest[x] = max_of(largest[x], fabsf(s[n][x]));
  }
  const float all =
      max_of(max_of(largest[0], largest[1]), max_of(largest[2], largest[3])) * fabsf(c);
  if (__all_sync(0xffffffffu, all <= kShortEnd)) {
    odd_polynomial(s, kShort, c);
  } else if (__all_sync(0xffffffffu, all <= kLongEnd)) {
    odd_polynomial(s, kLong, c);
  } else {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int x = 0; x < 4; ++x) s[n][x] = tanh_scaled(s[n][x], c * kTwoLog2E);
    }
  }
}

// Two adjacent values in shared memory, at an even index.
__device__ __forceinline__ void load_pair(float (&to)[2], const float* from) {
  const float2 both = *reinterpret_cast<const float2*>(from);
  to[0] = both.x;
  to[1] = both.y;
}
__device__ __forceinline__ void load_pair(long long (&to)[2], const long long* from) {
  const longlong2 both = *reinterpret_cast<const longlong2*>(from);
  to[0] = both.x;
  to[1] = both.y;
}
// The same at any index.
template <typename T>
__device__ __forceinline__ void load_two(T (&to)[2], const T* from) {
  to[0] = from[0];
  to[1] = from[1];
}

template <typename T>
__device__ __forceinline__ void load_pair(ValueOf<T> (&to)[2], const T* from) {
  to[0] = Element<T>::get(from[0]);
  to[1] = Element<T>::get(from[1]);
}
__device__ __forceinline__ void load_pair(float (&to)[2], const half_t* from) {
  const unsigned both = *reinterpret_cast<const unsigned*>(from);
  to[0] = ptx_half_to_float(static_cast<unsigned short>(both));
  to[1] = ptx_half_to_float(static_cast<unsigned short>(both >> 16));
}
__device__ __forceinline__ void load_pair(float (&to)[2], const bfloat_t* from) {
  const unsigned both = *reinterpret_cast<const unsigned*>(from);
  to[0] = __uint_as_float(both << 16);
  to[1] = __uint_as_float(both & 0xffff0000u);
}
__device__ __forceinline__ void load_pair(bool (&to)[2], const bool* from) {
  const unsigned short both = *reinterpret_cast<const unsigned short*>(from);
  to[0] = (both & 0xff) != 0;
  to[1] = both >> 8 != 0;
}

// Copies the warp's 16 rows of Keys elements of a tensor to rows Pitch bytes apart; `at(line)` is
// the offset of a row's first element. With `vector`, offsets are multiples of 16 bytes and
// elements from `valid` on become zeros.
template <int Keys, int Pitch, typename T, typename At>
__device__ __forceinline__ void copy_strip(char* strip, const T* from, At at, int valid,
                                           bool vector) {
  constexpr int kLines = 16, kGroup = 16 / sizeof(T), kGroups = Keys / kGroup;
  const int lane = threadIdx.x & 31;
  if (vector) {
    // Unrolling would keep the addresses of all rows in registers.
#pragma unroll 1
    for (int i = 0; i < (kLines * kGroups + 31) / 32; ++i) {
      const int task = i * 32 + lane, line = task / kGroups, column = task % kGroups * kGroup;
      if (kLines * kGroups % 32 != 0 && line >= kLines) break;
      const int left = min(max(valid - column, 0), kGroup) * static_cast<int>(sizeof(T));
      ptx_copy_async_part(strip + line * Pitch + column * static_cast<int>(sizeof(T)),
                          from + at(line) + (left > 0 ? column : 0), left);
    }
  } else {
    // The loads of a batch are in flight together: stores may alias later loads.
    constexpr int kBatch = 8;
    static_assert(kLines * Keys % (32 * kBatch) == 0, "every batch is full");
#pragma unroll 1
    for (int first = lane; first < kLines * Keys; first += 32 * kBatch) {
      T batch[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int line = (first + 32 * i) / Keys, column = (first + 32 * i) % Keys;
        if (column < valid) batch[i] = from[at(line) + column];
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int line = (first + 32 * i) / Keys, column = (first + 32 * i) % Keys;
        if (column < valid) reinterpret_cast<T*>(strip + line * Pitch)[column] = batch[i];
      }
    }
  }
}

// Two adjacent elements from an even offset.
__device__ __forceinline__ void store_pair(float* to, long long offset, const float (&x)[2]) {
  *reinterpret_cast<float2*>(to + offset) = make_float2(x[0], x[1]);
}
__device__ __forceinline__ void store_pair(half_t* to, long long offset, const float (&x)[2]) {
  *reinterpret_cast<unsigned*>(to + offset) = ptx_pack_half(x[0], x[1]);
}
__device__ __forceinline__ void store_pair(bfloat_t* to, long long offset, const float (&x)[2]) {
  *reinterpret_cast<unsigned*>(to + offset) = ptx_pack_bfloat(x[0], x[1]);
}

// A ring of Stages buffers between a producer thread and consumer warps. `barriers`: 2 Stages
// mbarriers, those for full buffers first. The n-th use of the ring is buffer n mod Stages.
template <int Stages>
struct Ring {
  unsigned barriers;
  __device__ __forceinline__ unsigned full(unsigned use) const {
    return barriers + use % Stages * 8;
  }
  __device__ __forceinline__ unsigned empty(unsigned use) const {
    return barriers + (Stages + use % Stages) * 8;
  }
  __device__ __forceinline__ void init(int consumers) const {
    for (int i = 0; i < Stages; ++i) {
      ptx_barrier_init(full(i), 1);
      ptx_barrier_init(empty(i), consumers);
    }
  }
  static __device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
    while (!ptx_barrier_try_wait(barrier, parity)) {
    }
  }
  // Waits until the buffer has been consumed, then expects `bytes` of copies and returns their
  // barrier.
  __device__ __forceinline__ unsigned acquire(unsigned use, unsigned bytes) const {
    wait(empty(use), (use / Stages & 1) ^ 1);
    ptx_barrier_expect(full(use), bytes);
    return full(use);
  }
  // The same for a buffer that the producer thread writes itself; fill() follows.
  __device__ __forceinline__ void acquire(unsigned use) const {
    wait(empty(use), (use / Stages & 1) ^ 1);
  }
  __device__ __forceinline__ void fill(unsigned use) const { ptx_barrier_arrive(full(use)); }
  __device__ __forceinline__ void wait_full(unsigned use) const {
    wait(full(use), use / Stages & 1);
  }
  // For waits that a release follows directly: a lane that is still polling could miss the phase
  // (ABA).
  __device__ __forceinline__ void wait_full_together(unsigned use) const {
    while (!__all_sync(0xffffffffu, ptx_barrier_try_wait(full(use), use / Stages & 1))) {
    }
  }
  // Every consumer warp calls this.
  __device__ __forceinline__ void release(unsigned use) const {
    if ((threadIdx.x & 31) == 0) ptx_barrier_arrive(empty(use));
  }
};

// The next work item of a block. Blocks start with the item of their own number, then take the next
// of `all` from `counter`; the block that takes the last one resets the counter to 0.
__device__ __forceinline__ int next_work(unsigned* counter, int all) {
  const unsigned taken = atomicAdd(counter, 1);
  if (taken == static_cast<unsigned>(all) - 1) atomicExch(counter, 0);
  return static_cast<int>(taken + gridDim.x);
}

// Warpgroups of a block take turns at the tensor cores while the others do arithmetic (ping-pong).
// The turn of group i is named barrier 1 + i.
template <int Groups>
__device__ __forceinline__ void await_turn(int group) {
  if constexpr (Groups > 1) ptx_named_sync(1 + group, 256);
}
template <int Groups>
__device__ __forceinline__ void pass_turn(int group) {
  if constexpr (Groups > 1) ptx_named_arrive(1 + (group + 1) % Groups, 256);
}
