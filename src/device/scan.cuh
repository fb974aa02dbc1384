// Running sums over the threads of a block.
#pragma once

// The sum of the values of this thread and those before it; `total` is the sum over the block.
// `slots` has Warps values and is free again after the next __syncthreads().
template <int Warps, typename T>
__device__ __forceinline__ T block_scan(T value, T* slots, T& total) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
  for (int distance = 1; distance < 32; distance <<= 1) {
    const T before = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value = before + value;
  }
  if (lane == 31) slots[warp] = value;
  __syncthreads();
  T offset = T(0);
  total = T(0);
#pragma unroll
  for (int i = 0; i < Warps; ++i) {
    if (i == warp) offset = total;
    total += slots[i];
  }
  return offset + value;
}

// y[i] = x[0] + ... + x[i] along a line of `size` elements `stride` apart, by one block. An
// exclusive sum is the sum of the elements shifted by one, not a difference, so that infinities
// stay exact.
template <int Warps, typename X, typename Y>
__device__ __forceinline__ void scan_line(const X* x, Y* y, long long base, long long size,
                                          long long stride, bool exclusive, bool reverse) {
  using T = ValueOf<X>;
  __shared__ T slots[2][Warps];
  T carry = T(0);
  int phase = 0;
  for (long long first = 0; first < size; first += Warps * 32, phase ^= 1) {
    const long long i = first + threadIdx.x, from = exclusive ? i - 1 : i;
    const auto place = [&](long long k) { return base + (reverse ? size - 1 - k : k) * stride; };
    const T value = i < size && from >= 0 ? load(x, place(from)) : T(0);
    T total;
    const T sum = block_scan<Warps>(value, slots[phase], total) + carry;
    if (i < size) store(y, place(i), sum);
    carry += total;
  }
}
