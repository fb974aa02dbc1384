// Floats of 8 bits on a GPU have the codes of the CPU: casts of every number of 16 bits and of
// floats around every tie, and quantisation. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "base/dispatch.h"
#include "base/half.h"
#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/low_bit_graphs.h"

namespace redfuser {
namespace {

constexpr int64_t kColumns = 64;

// Rows of these numbers, and zeros after them.
Tensor rows_of(const std::vector<float>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  Tensor x(DType::Float32, {(count + kColumns - 1) / kColumns, kColumns});
  std::memset(x.as<float>(), 0, x.bytes());
  std::copy(numbers.begin(), numbers.end(), x.as<float>());
  return x;
}

std::vector<float> numbers() {
  std::vector<float> all;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    all.push_back(static_cast<float>(std::bit_cast<Half>(static_cast<uint16_t>(bits))));
    all.push_back(std::bit_cast<float>(bits << 16));
  }
  for (const LowBitType& type : kLowBitTypes) {
    const std::vector<float> floats = low_bit_floats(type.dtype);
    all.insert(all.end(), floats.begin(), floats.end());
  }
  return all;
}

// Scales of all magnitudes, with zero, infinities and NaN among them.
void fill_scales(Tensor& scales) {
  const float special[] = {0, INFINITY, -INFINITY, NAN, -0.0f, 1e-40f};
  for (int64_t i = 0; i < scales.size(); ++i) {
    scales.as<float>()[i] =
        i % 17 == 5 ? special[i / 17 % 6] : std::ldexp(1.0f + static_cast<float>(i % 7), i % 9 - 4);
  }
}

NamedTensors inputs_of(const Model& model) {
  NamedTensors inputs = {{"x", rows_of(numbers())}};
  const int64_t rows = inputs.at("x").dims()[0];
  for (const ValueInfo& info : model.inputs()) {
    if (info.name == "x") continue;
    Dims dims;
    for (const auto& dim : info.dims) dims.push_back(dim.size < 0 ? rows : dim.size);
    Tensor scales(DType::Float32, dims);
    fill_scales(scales);
    inputs.emplace(info.name, std::move(scales));
  }
  return inputs;
}

double value_of(DType dtype, const char* element) {
  if (is_low_bit_float(dtype)) return low_bit_value(dtype, static_cast<uint8_t>(*element));
  return dispatch(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T value;
    std::memcpy(&value, element, sizeof value);
    return static_cast<double>(static_cast<Arithmetic<T>>(value));
  });
}

// Equal bits, but for those of NaN.
void expect_same(const std::string& name, const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.dims(), expected.dims()) << name;
  const size_t width = size_of(got.dtype());
  const auto* a = static_cast<const char*>(got.data());
  const auto* b = static_cast<const char*>(expected.data());
  for (int64_t i = 0; i < got.size(); ++i, a += width, b += width) {
    if (std::memcmp(a, b, width) == 0) continue;
    const double x = value_of(got.dtype(), a), y = value_of(got.dtype(), b);
    ASSERT_TRUE(std::isnan(x) && std::isnan(y)) << name << "[" << i << "]: " << x << ", not " << y;
  }
}

class CudaLowBit : public testing::TestWithParam<LowBitGraph> {};

TEST_P(CudaLowBit, HasTheCodesOfTheCpu) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  const Model model = Model::parse(GetParam().text);
  const Program program = compile(model);
  SessionOptions options;
  options.device = "cuda";
  const NamedTensors inputs = inputs_of(model);
  const NamedTensors got = Session(program, options).run(inputs);
  const NamedTensors expected = Session(program).run(inputs);
  for (const auto& [name, tensor] : expected) expect_same(name, got.at(name), tensor);
}

std::string name_of_case(const testing::TestParamInfo<LowBitGraph>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Graphs, CudaLowBit, testing::ValuesIn(low_bit_graphs()), name_of_case);

}  // namespace
}  // namespace redfuser
