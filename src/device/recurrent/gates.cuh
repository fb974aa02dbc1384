// Activations of recurrent layers, as ONNX defines them. `Fast`: for results that are rounded to 16
// bits (device/math.cuh).
#pragma once

#include "device/math.cuh"

template <bool Fast>
struct Activation {
  static __device__ __forceinline__ float exponential(float x) {
    return Fast ? exp_fast(x) : expf(x);
  }
  static __device__ __forceinline__ float sigmoid(float x) {
    return Fast ? ptx_reciprocal(1.0f + exp_fast(-x)) : 1.0f / (1.0f + expf(-x));
  }
  static __device__ __forceinline__ float tanh(float x) { return Fast ? tanh_fast(x) : tanhf(x); }
  static __device__ __forceinline__ float relu(float x) { return x < 0.0f ? 0.0f : x; }
  static __device__ __forceinline__ float affine(float x, float a, float b) { return a * x + b; }
  static __device__ __forceinline__ float leaky_relu(float x, float a) {
    return x < 0.0f ? a * x : x;
  }
  static __device__ __forceinline__ float thresholded_relu(float x, float a) {
    return x <= a ? 0.0f : x;
  }
  static __device__ __forceinline__ float scaled_tanh(float x, float a, float b) {
    return a * tanh(b * x);
  }
  static __device__ __forceinline__ float hard_sigmoid(float x, float a, float b) {
    const float y = a * x + b, low = y < 0.0f ? 0.0f : y;
    return low > 1.0f ? 1.0f : low;
  }
  static __device__ __forceinline__ float elu(float x, float a) {
    return x < 0.0f ? a * (exponential(x) - 1.0f) : x;
  }
  static __device__ __forceinline__ float softsign(float x) { return x / (1.0f + fabsf(x)); }
  static __device__ __forceinline__ float softplus(float x) {
    return relu(x) + log1pf(exponential(-fabsf(x)));
  }
};

// Cuts to [-limit, limit]; NaN stays.
__device__ __forceinline__ float clipped(float x, float limit) {
  const float low = x < -limit ? -limit : x;
  return low > limit ? limit : low;
}
