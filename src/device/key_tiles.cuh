// The tiles of keys that a tile of rows visits.
#pragma once

// The union of N ranges of tiles, numbered in order.
template <int N>
class KeyTiles {
 public:
  // Ranges in any order, which may overlap or be empty. They are sorted.
  __device__ __forceinline__ KeyTiles(int (&begin)[N], int (&end)[N]) {
#pragma unroll
    for (int sorted = 1; sorted < N; ++sorted) {
#pragma unroll
      for (int k = N - 1; k >= sorted; --k) order(begin, end, k);
    }
    int reach = 0;
    count_ = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int from = max(begin[k], reach);
      before_[k] = count_;
      shift_[k] = from - count_;
      reach = max(end[k], from);
      count_ += reach - from;
    }
  }

  __device__ __forceinline__ int count() const { return count_; }

  __device__ __forceinline__ int operator()(int i) const {
    int shift = shift_[0];
#pragma unroll
    for (int k = 1; k < N; ++k) {
      if (i >= before_[k]) shift = shift_[k];
    }
    return i + shift;
  }

 private:
  __device__ __forceinline__ static void order(int (&begin)[N], int (&end)[N], int k) {
    if (begin[k - 1] <= begin[k]) return;
    const int b = begin[k], e = end[k];
    begin[k] = begin[k - 1];
    end[k] = end[k - 1];
    begin[k - 1] = b;
    end[k - 1] = e;
  }

  int before_[N], shift_[N], count_;
};

// Adjacent tiles.
struct TileRange {
  int begin, tiles;
  __device__ __forceinline__ int count() const { return tiles; }
  __device__ __forceinline__ int operator()(int i) const { return begin + i; }
};
