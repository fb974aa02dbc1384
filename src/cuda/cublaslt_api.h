// The part of cuBLASLt's binary interface that is used, declared here so that building needs no
// CUDA. Names and values are those of NVIDIA's cuBLAS reference.
#pragma once

#include <cstddef>
#include <cstdint>

namespace redfuser::cuda {

using BlasStatus = int;           // cublasStatus_t
using BlasHandle = void*;         // cublasLtHandle_t
using ProductDescriptor = void*;  // cublasLtMatmulDesc_t
using MatrixLayout = void*;       // cublasLtMatrixLayout_t
using ProductPreference = void*;  // cublasLtMatmulPreference_t

enum BlasType : int {  // cudaDataType_t
  kReal32 = 0,
  kReal64 = 1,
  kReal16 = 2,
  kInteger8 = 3,
  kInteger32 = 10,
  kRealBrain16 = 14,
  kReal8E4M3 = 28,
  kReal8E5M2 = 29,
};

enum BlasCompute : int {  // cublasComputeType_t
  kCompute32 = 68,
  kCompute64 = 70,
  kComputeInteger32 = 72,
  kCompute32FastTf32 = 77,
};

inline constexpr int kDescriptorTransposeA = 3, kDescriptorTransposeB = 4;
inline constexpr int kDescriptorEpilogue = 7, kDescriptorBiasPointer = 8;
inline constexpr int kDescriptorScaleA = 17, kDescriptorScaleB = 18;  // device pointers
inline constexpr int kDescriptorScaleModeA = 31, kDescriptorScaleModeB = 32;
inline constexpr int32_t kScaleLines = 3;  // CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F
inline constexpr int kEpilogueBias = 4;
inline constexpr int kLayoutBatchCount = 5, kLayoutBatchStride = 6;
inline constexpr int kPreferenceWorkspaceBytes = 1;
inline constexpr int kPreferenceReductions = 3;
inline constexpr uint32_t kReduceInComputeType = 2;  // cublasLtReductionScheme_t
inline constexpr int kPreferenceAlignmentA = 5;      // then of B, C and D

struct BlasAlgorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};

struct BlasHeuristic {  // cublasLtMatmulHeuristicResult_t
  BlasAlgorithm algorithm;
  size_t workspace_bytes;
  BlasStatus state;
  float waves;
  int reserved[4];
};

struct BlasApi {
  size_t (*cublasLtGetVersion)();
  const char* (*cublasLtGetStatusString)(BlasStatus);
  BlasStatus (*cublasLtCreate)(BlasHandle*);
  BlasStatus (*cublasLtDestroy)(BlasHandle);
  BlasStatus (*cublasLtMatmulDescCreate)(ProductDescriptor*, int compute, int scale);
  BlasStatus (*cublasLtMatmulDescDestroy)(ProductDescriptor);
  BlasStatus (*cublasLtMatmulDescSetAttribute)(ProductDescriptor, int, const void*, size_t);
  BlasStatus (*cublasLtMatrixLayoutCreate)(MatrixLayout*, int type, uint64_t rows, uint64_t columns,
                                           int64_t leading);
  BlasStatus (*cublasLtMatrixLayoutDestroy)(MatrixLayout);
  BlasStatus (*cublasLtMatrixLayoutSetAttribute)(MatrixLayout, int, const void*, size_t);
  BlasStatus (*cublasLtMatmulPreferenceCreate)(ProductPreference*);
  BlasStatus (*cublasLtMatmulPreferenceDestroy)(ProductPreference);
  BlasStatus (*cublasLtMatmulPreferenceSetAttribute)(ProductPreference, int, const void*, size_t);
  BlasStatus (*cublasLtMatmulAlgoGetHeuristic)(BlasHandle, ProductDescriptor, MatrixLayout,
                                               MatrixLayout, MatrixLayout, MatrixLayout,
                                               ProductPreference, int, BlasHeuristic*, int*);
  BlasStatus (*cublasLtMatmul)(BlasHandle, ProductDescriptor, const void* alpha, const void* a,
                               MatrixLayout, const void* b, MatrixLayout, const void* beta,
                               const void* c, MatrixLayout, void* d, MatrixLayout,
                               const BlasAlgorithm*, void* workspace, size_t, void* stream);
};

}  // namespace redfuser::cuda
