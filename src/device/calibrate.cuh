// Kernels that do one thing as fast as a GPU can, to measure its rates.
#pragma once

#include "device/ptx.cuh"

// Pairs of halves, each of a magnitude in [0.5, 1).
extern "C" __global__ void __launch_bounds__(256) calibrate_fill(unsigned* words, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += step) {
    const unsigned mixed = static_cast<unsigned>(i) * 2654435761u;
    words[i] = ((mixed ^ mixed >> 15) & 0x83ff83ffu) | 0x38003800u;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    calibrate_copy(const uint4* from, uint4* to, long long count) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += step) {
    to[i] = ptx_load_once(from + i);
  }
}

// Reads the data `rounds` times, past the first-level cache.
extern "C" __global__ void __launch_bounds__(256)
    calibrate_read(const uint4* data, unsigned* sink, long long count, long long rounds) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  unsigned sum = 0;
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll 4
    for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += step) {
      const uint4 x = __ldcg(data + i);
      sum ^= x.x ^ x.y ^ x.z ^ x.w;
    }
  }
  if (sum == 0x12345678u) sink[0] = sum;
}

// Independent chains of a thread, and the steps of one without a branch.
constexpr int kCalibrateChains = 8, kCalibrateSteps = 16;

template <typename Step>
__device__ __forceinline__ void calibrate_chains(float* sink, long long rounds, const Step& step) {
  float x[kCalibrateChains];
#pragma unroll
  for (int c = 0; c < kCalibrateChains; ++c) x[c] = 0.01f * static_cast<float>(threadIdx.x + c);
  for (long long round = 0; round < rounds; ++round) {
#pragma unroll
    for (int s = 0; s < kCalibrateSteps; ++s) {
#pragma unroll
      for (int c = 0; c < kCalibrateChains; ++c) x[c] = step(x[c]);
    }
  }
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kCalibrateChains; ++c) sum += x[c];
  if (sum == 0.12345f) sink[0] = sum;
}

extern "C" __global__ void __launch_bounds__(256) calibrate_fma(float* sink, long long rounds) {
  const float scale = 0.5f + 1e-9f * static_cast<float>(rounds);
  calibrate_chains(sink, rounds, [=](float x) { return fmaf(x, scale, 0.25f); });
}

extern "C" __global__ void __launch_bounds__(256) calibrate_exp2(float* sink, long long rounds) {
  calibrate_chains(sink, rounds, [](float x) { return ptx_exp2(-x); });
}

extern "C" __global__ void __launch_bounds__(32) calibrate_nothing(float* sink, long long count) {
  if (count < 0) sink[0] = 0;
}
