// Products of a wide matrix and one of a few lines, at the speed of memory: each element of the
// wide matrix is read once, by 16-byte loads of which many are in flight. The warps of a block, and
// the blocks of a cluster, divide the contracted axis; their sums are added in a fixed order.
//
// Operands of 16 bits are multiplied by the tensor cores: the wide matrix has the 16 rows of
// mma.m16n8k16, the thin one its 8 columns. The order of the contracted axis within an instruction
// is free as long as both operands have the same, so a thread's fragments are what its loads bring.
// fp32 operands are multiplied by the scalar units.
#pragma once

#include "device/ptx.cuh"
#include "device/rows.cuh"
#include "device/types.cuh"

// Along: the wide matrix is contiguous along the contracted axis, else along its lines. ThinAlong:
// the thin one is. Lines: of the thin matrix, as padded. Products: wide matrices of one size.
template <typename T, bool Along_, bool ThinAlong_, int Lines_, int Warps_, int Blocks_,
          int Products_>
struct ThinTile {
  using Type = T;
  static constexpr bool Along = Along_, ThinAlong = ThinAlong_;
  static constexpr int Lines = Lines_, Warps = Warps_, Blocks = Blocks_, Products = Products_;
  static constexpr bool Tensor = sizeof(T) == 2;
  static constexpr int Threads = Warps * 32;
  // Elements of a 16-byte load; wide lines of a block; elements of the contracted axis in a step.
  static constexpr int Width = 16 / static_cast<int>(sizeof(T));
  static constexpr int Wide = Tensor ? 64 : 32;
  static constexpr int Step = Tensor && Along ? 32 : 16;
  // Loads of a thread in a step, for each product; steps whose loads are in flight together.
  static constexpr int Loads = Wide * Step / (32 * Width);
  static constexpr int Together = 16 / (Loads * Products) > 0 ? 16 / (Loads * Products) : 1;
  // Thin lines that are added together over the warps; the pitch of their sums.
  static constexpr int Group = Lines < 8 ? Lines : 8;
  static constexpr int Groups = Lines / Group;
  static constexpr int Pitch = Wide + 2;
  // A thread's sums of a group before and after that.
  static constexpr int Sums = Tensor ? 16 : 4 * Group;
  static constexpr int Shares = (Group * Wide + Threads - 1) / Threads;
  // Contiguous elements of a thin line that a thread multiplies in a step.
  static constexpr int Depth = Step / 4;
};

template <typename Tile>
struct ThinSlots {
  float parts[Tile::Warps][Tile::Group][Tile::Pitch];
  float sums[Tile::Blocks > 1 ? Tile::Products* Tile::Groups : 1][Tile::Group * Tile::Wide];
};

// Element k of line l: data[l · line + k · depth].
template <typename T>
struct ThinMatrix {
  const T* data;
  long long line, depth;
};

template <typename Tile>
class ThinProduct {
 public:
  using T = typename Tile::Type;
  using Slots = ThinSlots<Tile>;
  static constexpr int kProducts = Tile::Products;

  // `first`: the block's first wide line, of `wide`; `depth`: elements of the contracted axis.
  __device__ __forceinline__ ThinProduct(const ThinMatrix<T> (&matrices)[kProducts],
                                         const ThinMatrix<T>& thin, int first, int wide, int lines,
                                         int depth)
      : thin_(thin), first_(first), wide_(wide), lines_(lines), depth_(depth) {
#pragma unroll
    for (int p = 0; p < kProducts; ++p) matrices_[p] = matrices[p];
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
#pragma unroll
      for (int g = 0; g < Tile::Groups; ++g) {
#pragma unroll
        for (int i = 0; i < Tile::Sums; ++i) sums_[p][g][i] = 0;
      }
    }
  }

  // The sums of the warp, which takes every `parts`-th group of steps from `part` on. Vector: all
  // 16-byte loads are aligned, and have elements of the matrices alone or none of them.
  template <bool Vector>
  __device__ __forceinline__ void add(int part, int parts) {
    // 16-bit elements that are loaded one by one need registers of their own.
    constexpr int kSteps = Vector || !Tile::Tensor ? Tile::Together : 1;
    constexpr int kTogether = Tile::Step * kSteps;
#pragma unroll 1
    for (int from = part * kTogether; from < depth_; from += parts * kTogether) {
      unsigned words[kSteps][kProducts][Tile::Loads][4];
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int p = 0; p < kProducts; ++p) {
          load_wide<Vector>(words[s][p], matrices_[p], from + s * Tile::Step);
        }
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s) multiply<Vector>(words[s], from + s * Tile::Step);
    }
  }

  // Adds the sums of all warps and of all blocks of the cluster, and calls finish(wide line, thin
  // line, sums of the products) for each result, by one thread of the cluster.
  template <typename Finish>
  __device__ __forceinline__ void finish(Slots& slots, Finish finish) {
    float totals[kProducts][Tile::Groups][Tile::Shares];
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
#pragma unroll
      for (int g = 0; g < Tile::Groups; ++g) add_warps(totals[p][g], sums_[p][g], slots);
    }
#pragma unroll
    for (int g = 0; g < Tile::Groups; ++g) {
#pragma unroll
      for (int i = 0; i < Tile::Shares; ++i) {
        const int at = i * Tile::Threads + static_cast<int>(threadIdx.x);
        if (at >= Tile::Group * Tile::Wide) continue;
        if constexpr (Tile::Blocks > 1) {
#pragma unroll
          for (int p = 0; p < kProducts; ++p)
            slots.sums[p * Tile::Groups + g][at] = totals[p][g][i];
        } else {
          float sums[kProducts];
#pragma unroll
          for (int p = 0; p < kProducts; ++p) sums[p] = totals[p][g][i];
          call(finish, g, at, sums);
        }
      }
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (Tile::Blocks > 1) finish_cluster(slots, finish);
#endif
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) & 31; }
  // Lanes of one number have the same wide lines, lanes of one quarter the same contracted
  // elements.
  static __device__ __forceinline__ int number() { return lane() >> 2; }
  static __device__ __forceinline__ int quarter() { return lane() & 3; }

  // 16 bytes of which the first `valid` elements exist; the others are zeros.
  template <bool Vector>
  static __device__ __forceinline__ void load(unsigned (&words)[4], const T* from, int valid) {
#pragma unroll
    for (int w = 0; w < 4; ++w) words[w] = 0;
    if constexpr (Vector) {
      if (valid > 0) load_aligned<T, Tile::Width, true>(words, from);
    } else {
#pragma unroll
      for (int i = 0; i < Tile::Width; ++i) {
        if (i < valid) place(words, i, from[i]);
      }
    }
  }

  // Load i of a step that starts at `from`: 16 bytes of wide line first + 8 · i + number, or 16
  // bytes of lines at contracted element from + 4 · quarter + i.
  template <bool Vector>
  __device__ __forceinline__ void load_wide(unsigned (&words)[Tile::Loads][4],
                                            const ThinMatrix<T>& matrix, int from) const {
#pragma unroll
    for (int i = 0; i < Tile::Loads; ++i) {
      if constexpr (Tile::Along) {
        const int line = first_ + 8 * i + number(), k = from + quarter() * Tile::Width;
        load<Vector>(words[i], matrix.data + line * matrix.line + k, line < wide_ ? depth_ - k : 0);
      } else {
        const int line = first_ + number() * Tile::Width, k = from + quarter() * 4 + i;
        load<Vector>(words[i], matrix.data + k * matrix.depth + line,
                     k < depth_ ? wide_ - line : 0);
      }
    }
  }

  // The thread's Depth elements of a thin line in a step.
  template <bool Vector>
  __device__ __forceinline__ void load_thin(unsigned (&words)[Tile::Depth * sizeof(T) / 4],
                                            int line, int from) const {
    const int k = from + quarter() * Tile::Depth;
    const int valid = line < lines_ ? depth_ - k : 0;
    const T* const at = thin_.data + line * thin_.line + k * thin_.depth;
#pragma unroll
    for (int w = 0; w < static_cast<int>(Tile::Depth * sizeof(T) / 4); ++w) words[w] = 0;
    if constexpr (Vector && Tile::ThinAlong) {
      if (valid > 0) load_aligned<T, Tile::Depth, false>(words, at);
    } else {
#pragma unroll
      for (int i = 0; i < Tile::Depth; ++i) {
        if (i < valid) place(words, i, at[i * thin_.depth]);
      }
    }
  }

  template <bool Vector>
  __device__ __forceinline__ void multiply(const unsigned (&words)[kProducts][Tile::Loads][4],
                                           int from) {
#pragma unroll
    for (int g = 0; g < Tile::Groups; ++g) {
      if constexpr (Tile::Tensor) {
        unsigned thin[Tile::Depth / 2];
        load_thin<Vector>(thin, g * 8 + number(), from);
#pragma unroll
        for (int p = 0; p < kProducts; ++p) multiply_fragments(sums_[p][g], words[p], thin);
      } else {
#pragma unroll
        for (int l = 0; l < Tile::Group; ++l) {
          unsigned thin[Tile::Depth];
          load_thin<Vector>(thin, g * Tile::Group + l, from);
#pragma unroll
          for (int p = 0; p < kProducts; ++p) multiply_scalars(sums_[p][g], l, words[p], thin);
        }
      }
    }
  }

  // Sums 4 · i + c of instruction i, whose rows are wide lines number and number + 8 of its 16 if
  // Along, else 8 · number + 2 · i and the next one; its columns are thin lines 2 · quarter and the
  // next one.
  static __device__ __forceinline__ void multiply_fragments(
      float (&sums)[Tile::Sums], const unsigned (&words)[Tile::Loads][4],
      const unsigned (&thin)[Tile::Depth / 2]) {
    if constexpr (Tile::Along) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned a[4] = {words[2 * i][2 * half], words[2 * i + 1][2 * half],
                                 words[2 * i][2 * half + 1], words[2 * i + 1][2 * half + 1]};
          multiply_add(sums, 4 * i, a, thin[2 * half], thin[2 * half + 1]);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        // Bytes of two elements that are neighbours along the contracted axis.
        constexpr unsigned kLow = 0x5410, kHigh = 0x7632;
        const unsigned a[4] = {__byte_perm(words[0][i], words[1][i], kLow),
                               __byte_perm(words[0][i], words[1][i], kHigh),
                               __byte_perm(words[2][i], words[3][i], kLow),
                               __byte_perm(words[2][i], words[3][i], kHigh)};
        multiply_add(sums, 4 * i, a, thin[0], thin[1]);
      }
    }
  }

  static __device__ __forceinline__ void multiply_add(float (&sums)[Tile::Sums], int at,
                                                      const unsigned (&a)[4], unsigned b0,
                                                      unsigned b1) {
    float c[4] = {sums[at], sums[at + 1], sums[at + 2], sums[at + 3]};
    multiply_add(T{}, c, a, b0, b1);
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[at + i] = c[i];
  }

  static __device__ __forceinline__ void multiply_add(half_t, float (&c)[4], const unsigned (&a)[4],
                                                      unsigned b0, unsigned b1) {
    ptx_mma_half(c, a, b0, b1);
  }
  static __device__ __forceinline__ void multiply_add(bfloat_t, float (&c)[4],
                                                      const unsigned (&a)[4], unsigned b0,
                                                      unsigned b1) {
    ptx_mma_bfloat(c, a, b0, b1);
  }

  // Sums 4 · l + i: of wide line 8 · i + number if Along, else 4 · number + i.
  static __device__ __forceinline__ void multiply_scalars(float (&sums)[Tile::Sums], int l,
                                                          const unsigned (&words)[Tile::Loads][4],
                                                          const unsigned (&thin)[Tile::Depth]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const unsigned wide = Tile::Along ? words[i][k] : words[k][i];
        float& sum = sums[4 * l + i];
        sum = fmaf(__uint_as_float(wide), __uint_as_float(thin[k]), sum);
      }
    }
  }

  // The thread's shares of a group's sums over the warps.
  static __device__ __forceinline__ void add_warps(float (&totals)[Tile::Shares],
                                                   const float (&sums)[Tile::Sums], Slots& slots) {
    __syncthreads();
    store(slots.parts[threadIdx.x >> 5], sums);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Tile::Shares; ++i) {
      const int at = i * Tile::Threads + static_cast<int>(threadIdx.x);
      totals[i] = 0;
      if (at >= Tile::Group * Tile::Wide) continue;
#pragma unroll
      for (int w = 0; w < Tile::Warps; ++w) {
        totals[i] += slots.parts[w][at / Tile::Wide][at % Tile::Wide];
      }
    }
  }

  static __device__ __forceinline__ void store(float (&to)[Tile::Group][Tile::Pitch],
                                               const float (&sums)[Tile::Sums]) {
    if constexpr (Tile::Tensor) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int line = Tile::Along ? 16 * i + number() : 8 * number() + 2 * i;
        constexpr int kNext = Tile::Along ? 8 : 1;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          to[2 * quarter() + (c & 1)][line + (c >> 1) * kNext] = sums[4 * i + c];
        }
      }
    } else {
#pragma unroll
      for (int l = 0; l < Tile::Group; ++l) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float sum = sums[4 * l + i];
          sum += __shfl_xor_sync(0xffffffffu, sum, 1);
          sum += __shfl_xor_sync(0xffffffffu, sum, 2);
          if (quarter() == i) to[l][Tile::Along ? 8 * i + number() : 4 * number() + i] = sum;
        }
      }
    }
  }

  // Result `at` of a group.
  template <typename Finish>
  __device__ __forceinline__ void call(Finish& finish, int group, int at,
                                       const float (&sums)[kProducts]) const {
    const int line = group * Tile::Group + at / Tile::Wide, wide = first_ + at % Tile::Wide;
    if (line < lines_ && wide < wide_) finish(wide, line, sums);
  }

#if __CUDA_ARCH__ >= 900
  template <typename Finish>
  __device__ __forceinline__ void finish_cluster(Slots& slots, Finish& finish) const {
    ptx_cluster_arrive();
    ptx_cluster_wait();
    const int rank = static_cast<int>(ptx_cluster_rank());
#pragma unroll
    for (int g = 0; g < Tile::Groups; ++g) {
#pragma unroll 1
      for (int at = rank * Tile::Threads + static_cast<int>(threadIdx.x);
           at < Tile::Group * Tile::Wide; at += Tile::Blocks * Tile::Threads) {
        float sums[kProducts];
#pragma unroll
        for (int p = 0; p < kProducts; ++p) {
          const unsigned own = ptx_shared_address(&slots.sums[p * Tile::Groups + g][at]);
          float all[Tile::Blocks];
#pragma unroll
          for (unsigned b = 0; b < Tile::Blocks; ++b) {
            all[b] = ptx_load_cluster_float(ptx_map_shared(own, b));
          }
          sums[p] = all[0];
#pragma unroll
          for (int b = 1; b < Tile::Blocks; ++b) sums[p] += all[b];
        }
        call(finish, g, at, sums);
      }
    }
    ptx_cluster_arrive();
    ptx_cluster_wait();
  }
#endif

  ThinMatrix<T> matrices_[kProducts], thin_;
  int first_, wide_, lines_, depth_;
  float sums_[kProducts][Tile::Groups][Tile::Sums];
};
