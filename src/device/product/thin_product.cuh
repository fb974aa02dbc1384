// Products of a wide matrix and one of a few lines, at the speed of memory: each element of the
// wide matrix is read once, by 16-byte loads of which many are in flight. The warps of a block, and
// the blocks of a cluster, divide the contracted axis; their sums are added in a fixed order.
//
// A launch that starts early reads its first elements of wide matrices, which are then constants,
// while the kernels before it still run (programmatic dependent launch).
#pragma once

#include "device/product/thin_coded_loads.cuh"
#include "device/product/thin_sums.cuh"

// What ThinProduct::multiply waits for before it reads a thin matrix that another kernel writes.
struct ThinLaunches {
  template <bool Vector>
  __device__ __forceinline__ void make() const {
    ptx_await_launches();
  }
};

// Thin: how the thin matrix is read, a ThinMatrix or a ThinShared.
template <typename Tile, typename Thin = ThinMatrix<typename Tile::Type>>
class ThinProduct {
 public:
  using T = typename Tile::Type;
  using Matrix = typename ThinLoads<Tile>::Matrix;
  static constexpr int kProducts = Tile::Products;

  // All threads of the block call this first. The products have `wide` · `lines` sums of `depth`
  // terms; blocks have Tile::Wide wide lines each, a cluster of blocks the same ones.
  __device__ __forceinline__ ThinProduct(ThinSlots<Tile>& slots,
                                         const Matrix (&matrices)[kProducts], const Thin& thin,
                                         int wide, int lines, int depth)
      : adder_(slots, lines),
        thin_(thin),
        first_(static_cast<int>(blockIdx.x / Tile::Blocks) * Tile::Wide),
        wide_(wide),
        lines_(lines),
        depth_(depth) {
    adder_.open();
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

  // The sums of the block's share of the contracted axis. `vector`: all 16-byte loads are aligned,
  // and have elements of the matrices alone or none of them. The thin matrix is written once
  // lines.make<vector>() returns, which all threads call after their first loads of the wide ones.
  template <typename Lines = ThinLaunches>
  __device__ __forceinline__ void multiply(bool vector, const Lines& lines = {}) {
    const int part = static_cast<int>(blockIdx.x % Tile::Blocks * Tile::Warps + (threadIdx.x >> 5));
    if (vector) {
      add<true>(part, lines);
    } else {
      add<false>(part, lines);
    }
  }

  // Calls finish(wide line of the block, thin line, sums of the products) for each result, by one
  // thread of the cluster. All threads call this.
  template <typename Finish>
  __device__ __forceinline__ void finish(Finish finish) {
    adder_.finish(sums_, [&](int wide, int line, const float(&sums)[kProducts]) {
      if (first_ + wide < wide_) finish(first_ + wide, line, sums);
    });
  }

 private:
  // A thread's operands of Steps steps. Those of the thin matrix are loaded with the wide ones'
  // where they need few registers, else where they are multiplied.
  template <bool Vector, int Steps>
  struct Stage {
    static constexpr bool kThinAhead = Tile::Tensor && (!Tile::Coded || Tile::Groups == 1);
    ThinLoads<Tile> wide[Steps][kProducts];
    unsigned thin[kThinAhead ? Steps : 1][kThinAhead ? Tile::Groups : 1]
                 [kThinAhead ? Tile::Pieces : 1][Tile::PieceWords];

    __device__ __forceinline__ void load_wide(const ThinProduct& product, int from) {
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
#pragma unroll
        for (int p = 0; p < kProducts; ++p) {
          wide[s][p].template load<Vector>(product.matrices_[p], product.first_, product.wide_,
                                           from + s * Tile::Step, product.depth_);
        }
      }
    }

    __device__ __forceinline__ void load_thin(const ThinProduct& product, int from) {
      if constexpr (kThinAhead) {
#pragma unroll
        for (int s = 0; s < Steps; ++s) {
#pragma unroll
          for (int g = 0; g < Tile::Groups; ++g) {
#pragma unroll
            for (int i = 0; i < Tile::Pieces; ++i) {
              thin_load_piece<Tile, Vector>(thin[s][g][i], product.thin_, g * 8 + thin_number(),
                                            product.lines_, from + s * Tile::Step, product.depth_,
                                            i);
            }
          }
        }
      }
    }

    __device__ __forceinline__ void multiply(ThinProduct& product, int from) {
#pragma unroll
      for (int s = 0; s < Steps; ++s) {
        if constexpr (Tile::Coded && !Tile::Tensor) {
          // A loop that is not unrolled loads no thin elements ahead, which would fill registers.
          constexpr int kPieces = Tile::Pieces / 4;  // of a word of codes
#pragma unroll 1
          for (int word = 0; word < 4; ++word) {
            multiply_pieces<kPieces>(product, from, s, word * kPieces);
#pragma unroll
            for (int p = 0; p < kProducts; ++p) wide[s][p].next_word(word);
          }
        } else {
          multiply_pieces<Tile::Pieces>(product, from, s, 0);
        }
      }
    }

   private:
    // Pieces `first` and on, the first ones of those that the loads have.
    template <int Count>
    __device__ __forceinline__ void multiply_pieces(ThinProduct& product, int from, int s,
                                                    int first) {
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        unsigned words[kProducts][Tile::Loads][4];
#pragma unroll
        for (int p = 0; p < kProducts; ++p) wide[s][p].decode(words[p], i);
        multiply(product, words, from + s * Tile::Step, s, first + i);
      }
    }

    __device__ __forceinline__ void multiply(ThinProduct& product,
                                             const unsigned (&words)[kProducts][Tile::Loads][4],
                                             int from, int s, int piece) {
#pragma unroll
      for (int g = 0; g < Tile::Groups; ++g) {
        if constexpr (Tile::Tensor) {
          if constexpr (!kThinAhead) {
            thin_load_piece<Tile, Vector>(thin[0][0][0], product.thin_, g * 8 + thin_number(),
                                          product.lines_, from, product.depth_, piece);
          }
#pragma unroll
          for (int p = 0; p < kProducts; ++p) {
            thin_multiply_fragments<Tile>(
                product.sums_[p][g], words[p],
                thin[kThinAhead ? s : 0][kThinAhead ? g : 0][kThinAhead ? piece : 0]);
          }
        } else {
#pragma unroll
          for (int l = 0; l < Tile::Group; ++l) {
            thin_load_piece<Tile, Vector>(thin[0][0][0], product.thin_, g * Tile::Group + l,
                                          product.lines_, from, product.depth_, piece);
#pragma unroll
            for (int p = 0; p < kProducts; ++p) {
              thin_multiply_scalars<Tile>(product.sums_[p][g], l, words[p], thin[0][0][0]);
            }
          }
        }
      }
    }
  };

  // The warps of all blocks of the cluster take stages in turn.
  template <bool Vector, typename Lines>
  __device__ __forceinline__ void add(int part, const Lines& lines) {
    // 16-bit elements that are loaded one by one need registers of their own.
    constexpr int kSteps = Vector || !Tile::Tensor ? Tile::Together : 1;
    constexpr int kStages = Tile::Stages;
    Stage<Vector, kSteps> stages[kStages];
    const int stride = Tile::Blocks * Tile::Warps * kSteps * Tile::Step;
    int from = part * kSteps * Tile::Step;
#pragma unroll
    for (int i = 0; i < kStages; ++i) stages[i].load_wide(*this, from + i * stride);
    lines.template make<Vector>();
#pragma unroll
    for (int i = 0; i < kStages; ++i) stages[i].load_thin(*this, from + i * stride);
    bool more = true;
#pragma unroll 1
    for (; more; from += kStages * stride) {
      const int next = from + kStages * stride;
      more = next < depth_;
#pragma unroll
      for (int i = 0; i < kStages; ++i) {
        stages[i].multiply(*this, from + i * stride);
        if (!more) continue;
        stages[i].load_wide(*this, next + i * stride);
        stages[i].load_thin(*this, next + i * stride);
      }
    }
  }

  ThinSums<Tile> adder_;
  Matrix matrices_[kProducts];
  Thin thin_;
  int first_, wide_, lines_, depth_;
  float sums_[kProducts][Tile::Groups][Tile::Sums];
};
