// Elementwise kernels whose results have another order of axes than some of their operands, as a
// permutation of several short axes gives. A block computes a box: parts of several axes that are
// long enough both along the results' memory and along the operands'. Operands are loaded along
// their own memory and pass through shared memory, where they have the results' order.
#pragma once

#include "device/maps/group.cuh"
#include "device/math.cuh"
#include "device/types.cuh"

// A box is Rows rows of Along points, which are adjacent in the results' memory. A thread computes
// Width of them at a time. Rows of operands in shared memory are Pitch elements apart.
template <int Width_, int Rows_, int Along_, int Pitch_, int Threads_>
struct MapBox {
  static constexpr int Width = Width_, Rows = Rows_, Along = Along_, Pitch = Pitch_;
  static constexpr int Threads = Threads_, Points = Rows * Along;
  static_assert(Along % Width == 0 && Pitch >= Along, "rows are whole groups");
};

// An operand's elements of a box, in the results' order.
template <class Box, typename T>
struct OperandBox {
  T elements[Box::Rows * Box::Pitch];

  // Of Width adjacent points of a row, from `first` on.
  __device__ __forceinline__ Values<ValueOf<T>, Box::Width> group(int row, long long first) const {
    // Elements of an aligned access: a power of two that divides groups and the pitch.
    constexpr int kDivides = Box::Pitch & -Box::Pitch;
    constexpr int kMost = 16 / static_cast<int>(sizeof(T));
    constexpr int kWord = kDivides < Box::Width ? kDivides : Box::Width;
    constexpr int kLoad = kWord < kMost ? kWord : kMost;
    const T* const from = elements + row * Box::Pitch + static_cast<int>(first);
    Values<ValueOf<T>, Box::Width> result;
#pragma unroll
    for (int v = 0; v < Box::Width; v += kLoad) {
      ValueOf<T> loaded[kLoad];
      load_group<kLoad>(loaded, from, v, kLoad, true);
#pragma unroll
      for (int i = 0; i < kLoad; ++i) result[v + i] = loaded[i];
    }
    return result;
  }
};

// Where adjacent elements of an operand are: the offset of the first one, and its place in an
// OperandBox.
struct BoxUnit {
  long long from;
  int to;
  bool exists;
};

// Loads an operand's elements of a box by units of Unit adjacent ones, which are Step apart in the
// OperandBox. find(n) is the unit that begins with the operand's element n of the box. Elements
// that do not exist become 0. `vector`: every unit is aligned.
template <class Box, int Unit, int Step, typename T, class Find>
__device__ __forceinline__ void fill_box(OperandBox<Box, T>& box, const T* from, bool vector,
                                         const Find& find) {
  constexpr int kUnits = Box::Points / Unit, kOfThread = (kUnits + Box::Threads - 1) / Box::Threads;
  constexpr int kBatch = kOfThread < 8 ? kOfThread : 8;  // units that a thread loads at once
  for (int begin = static_cast<int>(threadIdx.x); begin < kUnits; begin += kBatch * Box::Threads) {
    Pack<T, Unit> loaded[kBatch];
    int to[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int number = begin + i * Box::Threads;
      const BoxUnit unit = find((number < kUnits ? number : kUnits - 1) * Unit);
      to[i] = unit.to;
      const long long offset = unit.exists ? unit.from : 0;
      const long long valid = number < kUnits && unit.exists ? Unit : 0;
      if (vector) {
#pragma unroll
        for (int w = 0; w < Pack<T, Unit>::kWords; ++w) {
          using Word = typename Pack<T, Unit>::Word;
          loaded[i].words[w] = valid > 0 ? reinterpret_cast<const Word*>(from + offset)[w] : Word();
        }
      } else {
#pragma unroll
        for (int v = 0; v < Unit; ++v) loaded[i].elements[v] = v < valid ? from[offset + v] : T();
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (begin + i * Box::Threads >= kUnits) break;
#pragma unroll
      for (int v = 0; v < Unit; ++v) box.elements[to[i] + v * Step] = loaded[i].elements[v];
    }
  }
}

// compute(row, group) for the groups of a box, of whose rows `along` points exist. `vector`: as in
// Group.
template <class Box, class Compute>
__device__ __forceinline__ void compute_box(long long along, bool vector, const Compute& compute) {
  constexpr int kGroups = Box::Along / Box::Width, kItems = Box::Rows * kGroups;
  // No point of a whole group is behind the last one, which the compiler sees by a far end.
  const long long end = along == Box::Along ? 1ll << 62 : along;
  for (int item = static_cast<int>(threadIdx.x); item < kItems; item += Box::Threads) {
    const int row = item / kGroups, first = item % kGroups * Box::Width;
    if (first < along) compute(row, Group<Box::Width>{first, along - first, end, vector});
  }
}

// fill(box) and compute(box), by all threads of a block, for each of `boxes`.
template <class Fill, class Compute>
__device__ __forceinline__ void box_map(long long boxes, const Fill& fill, const Compute& compute) {
  for (long long box = blockIdx.x; box < boxes; box += gridDim.x) {
    fill(box);
    __syncthreads();
    compute(box);
    __syncthreads();
  }
}
