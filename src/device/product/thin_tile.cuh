// The tile of a product of a wide matrix and one of a few lines: its sizes, the loads of its
// operands, and what a thread multiplies.
//
// Operands of 16 bits are multiplied by the tensor cores: the wide matrix has the 16 rows of
// mma.m16n8k16, the thin one its 8 columns. The order of the contracted axis within an instruction
// is free as long as both operands have the same, so a thread's fragments are what its loads bring.
// fp32 operands are multiplied by the scalar units.
#pragma once

#include "device/product/thin_codes.cuh"
#include "device/ptx.cuh"
#include "device/rows.cuh"
#include "device/types.cuh"

// Along: the wide matrix is contiguous along the contracted axis, else along its lines. ThinAlong:
// the thin one is. Lines: of the thin matrix, as padded. Products: wide matrices of one size.
// Wide: lines of them that a block multiplies; 16 or 32 for 16-bit operands that are Along, or
// 64 for 8 lines, 64 for others, 32 for fp32. Code: of the wide matrices' elements; those of few
// bits are Along.
template <typename T, bool Along_, bool ThinAlong_, int Lines_, int Wide_, int Warps_, int Blocks_,
          int Products_, typename Code_ = ThinElements>
struct ThinTile {
  using Type = T;
  using Code = Code_;
  static constexpr bool Along = Along_, ThinAlong = ThinAlong_;
  static constexpr bool Coded = Code::Bits > 0;
  static constexpr int Lines = Lines_, Wide = Wide_, Warps = Warps_, Blocks = Blocks_,
                       Products = Products_;
  static constexpr bool Tensor = sizeof(T) == 2;
  static constexpr int Threads = Warps * 32;
  // Elements of 16 bytes; elements of the contracted axis in a step.
  static constexpr int Width = 16 / static_cast<int>(sizeof(T));
  static constexpr int Step = Coded ? 512 / (Coded ? Code::Bits : 1) : Tensor && Along ? 32 : 16;
  // Thin lines that are added together over the warps.
  static constexpr int Group = Lines < 8 ? Lines : 8;
  static constexpr int Groups = Lines / Group;
  // A thread's sums of a group before that.
  static constexpr int Sums = Tensor ? Wide / 4 : 4 * Group;
  // Stages whose loads are in flight while one is multiplied. Scalar units need the registers of a
  // second one for thin elements.
  static constexpr int Stages = Tensor ? 2 : 1;
  // Loads of a thread in a step, for each product; steps of a stage. Many sums leave registers for
  // few loads.
  static constexpr int Loads = Coded ? Wide / 8 : Wide * Step / (32 * Width);
  static constexpr int Wanted = (Sums * Groups * Products > (Tensor ? 32 : 16) ? 8 : 16) / Stages;
  static constexpr int Together = !Coded && Wanted > Loads* Products ? Wanted / (Loads * Products)
                                                                     : 1;
  // Contiguous elements of a thin line that a thread multiplies in a step, and their words. Codes
  // become elements piece by piece.
  static constexpr int Depth = Step / 4;
  static constexpr int Words = Depth * static_cast<int>(sizeof(T)) / 4;
  static constexpr int Pieces = Coded ? Depth / Width : 1;
  static constexpr int PieceDepth = Depth / Pieces, PieceWords = Words / Pieces;
  // Scales of a load.
  static constexpr int Parts = Coded && Code::Block < Depth ? Depth / Code::Block : 1;
};

// Element k of line l: data[l · line + k · depth].
template <typename T>
struct ThinMatrix {
  const T* data;
  long long line, depth;

  // The compiler would load read-only memory before the wait for the kernel that writes it.
  static __device__ __forceinline__ T element(const T* from) {
    if constexpr (sizeof(T) == 2) {
      return from_bits<T>(ptx_load_in_order(reinterpret_cast<const unsigned short*>(from)));
    } else {
      return from_bits<T>(ptx_load_in_order(reinterpret_cast<const unsigned*>(from)));
    }
  }
};

// The same in the block's shared memory, which the block has written before it loads.
template <typename T>
struct ThinShared {
  const T* data;
  long long line, depth;

  static __device__ __forceinline__ T element(const T* from) { return *from; }
};

// Lanes of one number have the same wide lines, lanes of one quarter the same contracted elements.
__device__ __forceinline__ int thin_number() { return (static_cast<int>(threadIdx.x) & 31) >> 2; }
__device__ __forceinline__ int thin_quarter() { return static_cast<int>(threadIdx.x) & 3; }

// 16 bytes of which the first `valid` elements exist; the others are zeros. Vector: all or none.
template <typename Tile, bool Vector>
__device__ __forceinline__ void thin_load(unsigned (&words)[4], const typename Tile::Type* from,
                                          int valid) {
#pragma unroll
  for (int w = 0; w < 4; ++w) words[w] = 0;
  if constexpr (Vector) {
    if (valid <= 0) return;
    const uint4 quad = ptx_load_in_order(reinterpret_cast<const uint4*>(from));
    words[0] = quad.x;
    words[1] = quad.y;
    words[2] = quad.z;
    words[3] = quad.w;
  } else {
#pragma unroll
    for (int i = 0; i < Tile::Width; ++i) {
      if (i < valid) place(words, i, from[i]);
    }
  }
}

// A thread's loads of a wide matrix in a step that starts at contracted element `from`.
template <typename Tile, bool Coded = Tile::Coded>
struct ThinLoads {
  using Matrix = ThinMatrix<typename Tile::Type>;
  // Load i has 16 bytes of wide line first + 8 · i + number, or 16 bytes of lines at contracted
  // element from + 4 · quarter + i.
  unsigned words[Tile::Loads][4];

  template <bool Vector>
  __device__ __forceinline__ void load(const Matrix& matrix, int first, int wide, int from,
                                       int depth) {
#pragma unroll
    for (int i = 0; i < Tile::Loads; ++i) {
      if constexpr (Tile::Along) {
        const int line = first + 8 * i + thin_number(), k = from + thin_quarter() * Tile::Width;
        thin_load<Tile, Vector>(words[i], matrix.data + line * matrix.line + k,
                                line < wide ? depth - k : 0);
      } else {
        const int line = first + thin_number() * Tile::Width, k = from + thin_quarter() * 4 + i;
        thin_load<Tile, Vector>(words[i], matrix.data + k * matrix.depth + line,
                                k < depth ? wide - line : 0);
      }
    }
  }

  __device__ __forceinline__ void decode(unsigned (&piece)[Tile::Loads][4], int) const {
#pragma unroll
    for (int i = 0; i < Tile::Loads; ++i) {
#pragma unroll
      for (int w = 0; w < 4; ++w) piece[i][w] = words[i][w];
    }
  }
};

// The thread's elements of a piece of thin line `line`, of `lines`, in a step. Thin: a ThinMatrix
// or a ThinShared.
template <typename Tile, bool Vector, typename Thin>
__device__ __forceinline__ void thin_load_piece(unsigned (&words)[Tile::PieceWords],
                                                const Thin& thin, int line, int lines, int from,
                                                int depth, int piece) {
  const int k = from + thin_quarter() * Tile::Depth + piece * Tile::PieceDepth;
  const int valid = line < lines ? depth - k : 0;
  const typename Tile::Type* const at = thin.data + line * thin.line + k * thin.depth;
#pragma unroll
  for (int w = 0; w < Tile::PieceWords; ++w) words[w] = 0;
  // One branch skips the loads of a step without elements. Between a scalar unit's loads it takes
  // longer than they do.
  if constexpr (Tile::Tensor) {
    if (valid <= 0) return;
  }
  if constexpr (Vector && Tile::ThinAlong) {
    if (valid > 0) load_aligned<typename Tile::Type, Tile::PieceDepth, false>(words, at);
  } else {
#pragma unroll
    for (int i = 0; i < Tile::PieceDepth; ++i) {
      if (i < valid) place(words, i, Thin::element(at + i * thin.depth));
    }
  }
}

__device__ __forceinline__ void thin_mma(half_t, float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
  ptx_mma_half(c, a, b0, b1);
}
__device__ __forceinline__ void thin_mma(bfloat_t, float (&c)[4], const unsigned (&a)[4],
                                         unsigned b0, unsigned b1) {
  ptx_mma_bfloat(c, a, b0, b1);
}

template <typename Tile>
__device__ __forceinline__ void thin_mma(float (&sums)[Tile::Sums], int at, const unsigned (&a)[4],
                                         unsigned b0, unsigned b1) {
  float c[4] = {sums[at], sums[at + 1], sums[at + 2], sums[at + 3]};
  thin_mma(typename Tile::Type{}, c, a, b0, b1);
#pragma unroll
  for (int i = 0; i < 4; ++i) sums[at + i] = c[i];
}

// Sums 4 · i + c of instruction i, whose rows are wide lines number and number + 8 of its 16 if
// Along, else 8 · number + 2 · i and the next one; its columns are thin lines 2 · quarter and the
// next one.
template <typename Tile>
__device__ __forceinline__ void thin_multiply_fragments(float (&sums)[Tile::Sums],
                                                        const unsigned (&words)[Tile::Loads][4],
                                                        const unsigned (&thin)[Tile::PieceWords]) {
#pragma unroll
  for (int i = 0; i < Tile::Sums / 4; ++i) {
    if constexpr (Tile::Along) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned a[4] = {words[2 * i][2 * half], words[2 * i + 1][2 * half],
                               words[2 * i][2 * half + 1], words[2 * i + 1][2 * half + 1]};
        thin_mma<Tile>(sums, 4 * i, a, thin[2 * half], thin[2 * half + 1]);
      }
    } else {
      // Bytes of two elements that are neighbours along the contracted axis.
      constexpr unsigned kLow = 0x5410, kHigh = 0x7632;
      const unsigned a[4] = {__byte_perm(words[0][i], words[1][i], kLow),
                             __byte_perm(words[0][i], words[1][i], kHigh),
                             __byte_perm(words[2][i], words[3][i], kLow),
                             __byte_perm(words[2][i], words[3][i], kHigh)};
      thin_mma<Tile>(sums, 4 * i, a, thin[0], thin[1]);
    }
  }
}

// Sums 4 · l + i: of wide line 8 · i + number if Along, else 4 · number + i.
template <typename Tile>
__device__ __forceinline__ void thin_multiply_scalars(float (&sums)[Tile::Sums], int l,
                                                      const unsigned (&words)[Tile::Loads][4],
                                                      const unsigned (&thin)[Tile::PieceWords]) {
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
