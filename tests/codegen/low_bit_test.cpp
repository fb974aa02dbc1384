// Floats of 8 bits and fewer in kernels: the functions of src/device/low_bit.cuh, compiled for the
// host, against base/low_bit.h; and that NVRTC takes what graphs with them become.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "base/half.h"
#include "base/low_bit.h"
#include "support/codegen_harness.h"
#include "support/low_bit_graphs.h"

// Functions of device headers, for the host.
#define __device__
#define __forceinline__ inline
namespace device_codes {
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float fabsf(float x) { return std::fabs(x); }
inline float fminf(float x, float y) { return std::fmin(x, y); }
inline float rintf(float x) { return std::rint(x); }
inline float fmaf(float x, float y, float z) { return std::fma(x, y, z); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float ptx_half_to_float(unsigned short bits) {
  return static_cast<float>(std::bit_cast<redfuser::Half>(bits));
}
inline unsigned short ptx_float_to_half(float) { return 0; }
inline unsigned short ptx_float_to_bfloat(float) { return 0; }
#include "device/types.cuh"
// Specialises templates of the former.
#include "device/low_bit.cuh"
}  // namespace device_codes
#undef __device__
#undef __forceinline__

namespace redfuser::codegen_tests {
namespace {

struct Type {
  DType dtype;
  float (*value)(unsigned code);
  unsigned (*code)(float x);
  unsigned (*saturated)(float x) = nullptr;
};
template <typename T>
Type type_of(DType dtype) {
  Type type{dtype, [](unsigned code) { return device_codes::to_float(T(code)); },
            [](float x) -> unsigned { return device_codes::to_low_bit<T>(x).bits; }};
  if constexpr (!std::is_same_v<T, device_codes::e8m0_t>) {
    type.saturated = [](float x) -> unsigned {
      return device_codes::to_low_bit_saturated<T>(x).bits;
    };
  }
  return type;
}
const Type kTypes[] = {type_of<device_codes::e4m3fn_t>(DType::Float8E4M3FN),
                       type_of<device_codes::e4m3fnuz_t>(DType::Float8E4M3FNUZ),
                       type_of<device_codes::e5m2_t>(DType::Float8E5M2),
                       type_of<device_codes::e5m2fnuz_t>(DType::Float8E5M2FNUZ),
                       type_of<device_codes::e8m0_t>(DType::Float8E8M0),
                       type_of<device_codes::e2m1_t>(DType::Float4E2M1)};

void expect_code(const Type& type, float x) {
  ASSERT_EQ(type.code(x), low_bit_code(type.dtype, x)) << name_of(type.dtype) << " of " << x;
  if (type.saturated == nullptr) return;
  const float largest = low_bit_maximum(type.dtype);
  const float clamped = std::isnan(x) ? x : std::clamp(x, -largest, largest);
  ASSERT_EQ(type.saturated(x), low_bit_code(type.dtype, clamped))
      << name_of(type.dtype) << " of " << x << ", saturated";
}

TEST(DeviceLowBit, EveryCodeHasItsValue) {
  for (const Type& type : kTypes) {
    for (unsigned code = 0; code < 256; ++code) {
      const float expected = low_bit_value(type.dtype, static_cast<uint8_t>(code));
      const float got = type.value(code);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(got)) << name_of(type.dtype) << " " << code;
      } else {
        EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected))
            << name_of(type.dtype) << " " << code;
      }
    }
  }
}

TEST(DeviceLowBit, EveryNumberOf16BitsHasItsCode) {
  for (const Type& type : kTypes) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
      expect_code(type, static_cast<float>(std::bit_cast<Half>(static_cast<uint16_t>(bits))));
      expect_code(type, std::bit_cast<float>(bits << 16));
    }
  }
}

TEST(DeviceLowBit, FloatsHaveTheirCodes) {
  for (const Type& type : kTypes) {
    for (const float x : low_bit_floats(type.dtype)) expect_code(type, x);
  }
}

// Equal as codes to the quotient of the division; ties and special values among the dividends.
TEST(DeviceLowBit, QuotientsHaveTheCodesOfDivisions) {
  std::mt19937 random(1);
  std::vector<float> divisors = {0,        -0.0f,    1,       -3,       0x1p-149f, 0x1p-61f,
                                 0x1p-60f, 0x1p120f, 3.4e38f, INFINITY, NAN};
  for (int i = 0; i < 8; ++i) {
    divisors.push_back(std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x7fffffffu));
    divisors.push_back(std::ldexp(1.0f + static_cast<float>(random() % (1u << 23)) * 0x1p-23f,
                                  static_cast<int>(random() % 20) - 10));
  }
  for (const Type& type : kTypes) {
    if (type.saturated == nullptr) continue;
    for (const float d : divisors) {
      for (const float quotient : low_bit_floats(type.dtype)) {
        for (const float x : {quotient, quotient * d, std::nextafter(quotient * d, INFINITY)}) {
          ASSERT_EQ(type.code(device_codes::code_quotient(x, d)), type.code(x / d))
              << name_of(type.dtype) << " of " << x << " / " << d;
        }
      }
    }
  }
}

class LowBitCompile : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(LowBitCompile, EveryGraph) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  std::map<std::string, std::string> origins;
  for (const LowBitGraph& graph : low_bit_graphs()) {
    const GeneratedModel generated = generate_model(Model::parse(graph.text), GetParam());
    EXPECT_FALSE(generated.kernels.empty()) << graph.name;
    for (const codegen::KernelLaunch& kernel : generated.kernels) {
      origins[kernel.source] = graph.name;
    }
  }
  // A quotient's slow path is a call, for which ptxas takes few registers.
  constexpr int kSpilled = 16;
  for (const Compiler::Result& result : compile_all(origins, GetParam().architecture)) {
    EXPECT_LE(result.spilled, kSpilled) << result.log;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, LowBitCompile, testing::ValuesIn(kTargets), target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
