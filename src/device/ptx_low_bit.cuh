// Conversions of 8-bit floats, one instruction per function.
#pragma once

#if __CUDA_ARCH__ >= 890
// Codes, which saturate; NaN is 0x7f.
__device__ __forceinline__ unsigned ptx_float_to_e4m3(float value) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return pair;
}
__device__ __forceinline__ unsigned ptx_float_to_e5m2(float value) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(value));
  return pair;
}
// The bits of a number of fp16.
__device__ __forceinline__ unsigned short ptx_e4m3_to_half(unsigned char code) {
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(code)));
  return static_cast<unsigned short>(pair);
}
#endif
