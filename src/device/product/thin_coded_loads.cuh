// The loads of wide matrices of few bits.
#pragma once

#include "device/product/thin_tile.cuh"

template <typename Tile>
struct ThinLoads<Tile, true> {
  using T = typename Tile::Type;
  using Matrix = ThinCodedMatrix<T>;
  using Decoder = ThinDecoder<T, Tile::Code::Bits>;
  // Load i has the codes of wide line first + 8 · i + number.
  unsigned codes[Tile::Loads][4];
  T scales[Tile::Loads][Tile::Parts];
  unsigned zeros[Tile::Loads][Tile::Parts];

  template <bool Vector>
  __device__ __forceinline__ void load(const Matrix& matrix, int first, int wide, int from,
                                       int depth) {
    const int lane = static_cast<int>(threadIdx.x) & 31;
#pragma unroll
    for (int i = 0; i < Tile::Loads; ++i) {
      const int group = first / 8 + i;
      const bool inside = group * 8 < wide && from < depth;
      uint4 quad = {0, 0, 0, 0};
      if (inside) {
        const long long at = static_cast<long long>(group) * matrix.steps + from / Tile::Step;
        quad = ptx_load_in_order(matrix.codes + at * 32 + lane);
      }
      codes[i][0] = quad.x;
      codes[i][1] = quad.y;
      codes[i][2] = quad.z;
      codes[i][3] = quad.w;
#pragma unroll
      for (int part = 0; part < Tile::Parts; ++part) {
        const int element = thin_quarter() * Tile::Depth + part * Tile::Code::Block;
        const int block = (from + element) / Tile::Code::Block;
        const long long place = (static_cast<long long>(group) * matrix.blocks + block) * 8;
        const bool scaled = inside && block < matrix.blocks;
        scales[i][part] =
            scaled ? ThinMatrix<T>::element(matrix.scales + place + thin_number()) : T{};
        zeros[i][part] = matrix.zero;
        if constexpr (Tile::Code::Zeros) {
          zeros[i][part] = scaled ? ptx_load_in_order(matrix.zeros + place + thin_number()) : 0;
        }
      }
    }
  }

  // Word `word` has been used: the next one takes its place, and a block's factors with it.
  __device__ __forceinline__ void next_word(int word) {
#pragma unroll
    for (int i = 0; i < Tile::Loads; ++i) {
#pragma unroll
      for (int w = 0; w < 3; ++w) codes[i][w] = codes[i][w + 1];
      if constexpr (Tile::Parts == 2) {
        if (word != 1) continue;
        scales[i][0] = scales[i][1];
        zeros[i][0] = zeros[i][1];
      }
    }
  }

  // The elements of a piece.
  __device__ __forceinline__ void decode(unsigned (&words)[Tile::Loads][4], int piece) const {
    constexpr int kPieces = Tile::Pieces / Tile::Parts;  // of a scale
#pragma unroll
    for (int i = 0; i < Tile::Loads; ++i) {
      const int part = piece / kPieces;
      Decoder::decode(words[i], codes[i], piece, Decoder::factors(scales[i][part], zeros[i][part]));
    }
  }
};
