// Convolutions and pools against loops that follow the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "redfuser/error.h"
#include "support/opaque_harness.h"

namespace redfuser::testing {
namespace {

using Ints = std::vector<int64_t>;

Tensor random_tensor(DType dtype, Dims dims, uint32_t seed, int levels = 17) {
  std::mt19937 engine(seed);
  std::vector<float> values(element_count(dims));
  // Multiples of 1/8: sums are exact in every dtype, whatever their order.
  for (float& value : values) {
    value = (static_cast<int>(engine() % levels) - levels / 2) / 8.0f;
  }
  return make_tensor(dtype, std::move(dims), values);
}

// One window of a test, in as many spatial dimensions as `kernel` has.
struct WindowCase {
  Ints input, kernel, strides, dilations, pads;
  int64_t group = 1, channels = 2, filters = 4;
  DType dtype = DType::Float32;
  std::string auto_pad;
  bool ceil_mode = false;

  size_t rank() const { return kernel.size(); }
  int64_t stride(size_t i) const { return strides.empty() ? 1 : strides[i]; }
  int64_t dilation(size_t i) const { return dilations.empty() ? 1 : dilations[i]; }
  int64_t pad(size_t i) const { return pads.empty() ? 0 : pads[i]; }

  ir::Attributes attributes() const {
    ir::Attributes result{{"kernel_shape", kernel}};
    if (!strides.empty()) result["strides"] = strides;
    if (!dilations.empty()) result["dilations"] = dilations;
    if (!pads.empty()) result["pads"] = pads;
    if (!auto_pad.empty()) result["auto_pad"] = auto_pad;
    if (ceil_mode) result["ceil_mode"] = int64_t{1};
    return result;
  }
};

// Steps `index` through `dims` in row-major order; false after the last.
bool advance(Ints& index, const Ints& dims) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

int64_t flat(const Ints& index, const Ints& dims) {
  int64_t at = 0;
  for (size_t i = 0; i < dims.size(); ++i) at = at * dims[i] + index[i];
  return at;
}

Ints spatial_of(const Tensor& tensor) { return {tensor.dims().begin() + 2, tensor.dims().end()}; }

// Calls body(output pixel, tap, input pixel or -1, whether inside input or padding).
template <typename Body>
void for_each_tap(const WindowCase& test, const Ints& output, const Ints& begin, const Body& body) {
  Ints o(test.rank(), 0);
  do {
    Ints k(test.rank(), 0);
    do {
      Ints at(test.rank());
      bool inside = true, padded = true;
      for (size_t i = 0; i < test.rank(); ++i) {
        at[i] = o[i] * test.stride(i) + k[i] * test.dilation(i) - begin[i];
        inside &= at[i] >= 0 && at[i] < test.input[i];
        padded &= at[i] < test.input[i] + test.pad(test.rank() + i);
      }
      body(flat(o, output), flat(k, test.kernel), inside ? flat(at, test.input) : -1, padded);
    } while (advance(k, test.kernel));
  } while (advance(o, output));
}

Ints begin_of(const WindowCase& test, const Ints& output) {
  Ints begin;
  for (size_t i = 0; i < test.rank(); ++i) {
    int64_t total = (output[i] - 1) * test.stride(i) + (test.kernel[i] - 1) * test.dilation(i) + 1 -
                    test.input[i];
    total = std::max<int64_t>(total, 0);
    begin.push_back(test.auto_pad == "SAME_UPPER"   ? total / 2
                    : test.auto_pad == "SAME_LOWER" ? total - total / 2
                                                    : test.pad(i));
  }
  return begin;
}

Dims with_channels(int64_t batch, int64_t channels, const Ints& spatial) {
  Dims dims{batch, channels};
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return dims;
}

class Conv : public ::testing::TestWithParam<WindowCase> {};

TEST_P(Conv, MatchesTheDefinition) {
  const WindowCase& test = GetParam();
  constexpr int64_t kBatch = 2;
  Tensor x = random_tensor(test.dtype, with_channels(kBatch, test.channels, test.input), 1);
  Tensor w = random_tensor(test.dtype,
                           with_channels(test.filters, test.channels / test.group, test.kernel), 2);
  Tensor b = random_tensor(test.dtype, {test.filters}, 3);
  ir::Attributes attributes = test.attributes();
  attributes["group"] = test.group;
  Tensor y = run_node({"Conv", {x, w, b}, attributes})[0];

  Ints output = spatial_of(y), begin = begin_of(test, output);
  int64_t in = element_count(test.input), out = element_count(output);
  int64_t taps = element_count(test.kernel), depth = test.channels / test.group;
  auto xs = values_of(x), ws = values_of(w), bs = values_of(b), ys = values_of(y);
  std::vector<double> expected(ys.size());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = bs[i / out % test.filters];
  for_each_tap(test, output, begin, [&](int64_t o, int64_t k, int64_t i, bool) {
    if (i < 0) return;
    for (int64_t n = 0; n < kBatch; ++n) {
      for (int64_t f = 0; f < test.filters; ++f) {
        int64_t first = f / (test.filters / test.group) * depth;
        for (int64_t c = 0; c < depth; ++c) {
          expected[(n * test.filters + f) * out + o] +=
              xs[(n * test.channels + first + c) * in + i] * ws[(f * depth + c) * taps + k];
        }
      }
    }
  });
  bool narrow = size_of(test.dtype) == 2;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(ys[i], expected[i], narrow ? 0.02 * std::abs(expected[i]) : 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Conv,
    ::testing::Values(
        WindowCase{{7}, {3}, {}, {}, {}}, WindowCase{{9}, {3}, {2}, {2}, {3, 1}},
        WindowCase{{5, 6}, {1, 1}, {}, {}, {}, 1, 8, 6},
        WindowCase{{5, 6}, {1, 1}, {2, 2}, {}, {}, 1, 3, 4},
        WindowCase{{5, 6}, {1, 1}, {}, {}, {1, 1, 0, 0}, 1, 3, 4},
        WindowCase{{1, 1}, {1, 1}, {3, 3}, {}, {1, 1, 1, 1}, 1, 3, 4},
        WindowCase{{6, 7}, {3, 3}, {}, {}, {1, 1, 1, 1}, 1, 3, 5},
        WindowCase{{6, 7}, {3, 2}, {2, 3}, {1, 2}, {1, 0, 2, 1}, 2, 4, 6},
        WindowCase{{40, 40}, {3, 3}, {}, {}, {1, 1, 1, 1}, 1, 16, 70},
        WindowCase{{8, 9}, {3, 3}, {}, {}, {1, 1, 1, 1}, 6, 6, 6},
        WindowCase{{8, 9}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}, 6, 6, 6},
        WindowCase{{8, 9}, {3, 3}, {}, {}, {}, 3, 3, 6},
        WindowCase{{70}, {9}, {4}, {}, {4, 4}, 1, 5, 40},
        WindowCase{{300}, {5}, {1}, {3}, {6, 6}, 2, 12, 44},
        WindowCase{{9, 1}, {3, 1}, {2, 1}, {}, {1, 0, 1, 0}, 1, 5, 33},
        WindowCase{{13, 29}, {1, 1}, {2, 2}, {}, {}, 1, 150, 37},
        WindowCase{{11, 13}, {5, 3}, {3, 2}, {}, {2, 1, 2, 1}, 1, 40, 24},
        WindowCase{{17, 19}, {3, 3}, {}, {}, {}, 4, 16, 64, DType::Float64},
        WindowCase{{33, 34}, {5, 5}, {2, 2}, {}, {2, 2, 2, 2}, 9, 9, 9},
        WindowCase{{7, 7}, {5, 5}, {}, {}, {2, 2, 2, 2}, 40, 40, 40},
        WindowCase{{14, 15}, {3, 3}, {2, 3}, {2, 1}, {0, 2, 3, 0}, 5, 5, 10},
        WindowCase{{60}, {31}, {}, {}, {15, 15}, 7, 7, 7},
        WindowCase{{4, 9, 10}, {3, 3, 3}, {2, 2, 2}, {}, {1, 1, 1, 1, 1, 1}, 3, 3, 3},
        WindowCase{{4, 9, 10}, {3, 3, 3}, {1, 2, 1}, {}, {1, 1, 1, 1, 1, 1}, 1, 4, 20},
        WindowCase{{5, 6, 7}, {2, 3, 2}, {1, 2, 1}, {}, {1, 1, 0, 0, 1, 1}, 1, 2, 3},
        WindowCase{{4, 5, 6}, {3, 3, 3}, {}, {}, {1, 1, 1, 1, 1, 1}, 2, 2, 2},
        WindowCase{{7, 8}, {3, 4}, {2, 3}, {}, {}, 1, 2, 4, DType::Float32, "SAME_UPPER"},
        WindowCase{{7, 8}, {3, 4}, {2, 3}, {}, {}, 1, 2, 4, DType::Float32, "SAME_LOWER"},
        WindowCase{{7, 8}, {3, 4}, {2, 3}, {}, {}, 1, 2, 4, DType::Float32, "VALID"},
        WindowCase{{6, 7}, {3, 3}, {}, {}, {1, 1, 1, 1}, 1, 3, 5, DType::Float64},
        WindowCase{{6, 7}, {3, 3}, {}, {}, {1, 1, 1, 1}, 1, 3, 5, DType::Float16},
        WindowCase{{6, 7}, {3, 3}, {}, {}, {1, 1, 1, 1}, 1, 3, 5, DType::BFloat16}));

TEST(ConvErrors, NameTheNodeAndTheShapes) {
  Tensor x = random_tensor(DType::Float32, {1, 4, 5}, 1);
  Tensor w = random_tensor(DType::Float32, {2, 3, 3}, 1);
  EXPECT_THROW(run_node({"Conv", {x, w}}), UserError);
  Tensor wide = random_tensor(DType::Float32, {2, 4, 9}, 1);
  EXPECT_THROW(run_node({"Conv", {x, wide}}), UserError);
}

// The transposed convolution is the gradient of the convolution: <conv(y), x> = <y, conv'(x)>.
class ConvTranspose : public ::testing::TestWithParam<WindowCase> {};

TEST_P(ConvTranspose, IsTheAdjointOfTheConvolution) {
  WindowCase test = GetParam();  // `input` is that of the transposed convolution
  Tensor x = random_tensor(test.dtype, with_channels(2, test.channels, test.input), 1);
  Tensor w = random_tensor(test.dtype,
                           with_channels(test.channels, test.filters / test.group, test.kernel), 2);
  ir::Attributes attributes = test.attributes();
  attributes["group"] = test.group;
  Tensor y = run_node({"ConvTranspose", {x, w}, attributes})[0];
  Tensor probe = random_tensor(test.dtype, y.dims(), 4);
  Tensor back = run_node({"Conv", {probe, w}, attributes})[0];
  ASSERT_EQ(back.dims(), x.dims());
  double left = 0, right = 0;
  auto xs = values_of(x), ys = values_of(y), ps = values_of(probe), bs = values_of(back);
  for (size_t i = 0; i < xs.size(); ++i) left += xs[i] * bs[i];
  for (size_t i = 0; i < ys.size(); ++i) right += ys[i] * ps[i];
  EXPECT_EQ(left, right);
  EXPECT_NE(left, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ConvTranspose,
    ::testing::Values(WindowCase{{5}, {3}, {2}, {}, {1, 1}, 1, 2, 4},
                      WindowCase{{4, 5}, {3, 3}, {2, 2}, {}, {}, 1, 3, 5},
                      WindowCase{{4, 5}, {3, 2}, {2, 3}, {2, 1}, {1, 0, 2, 1}, 2, 4, 6},
                      WindowCase{{3, 4, 2}, {2, 3, 2}, {2, 1, 2}, {}, {}, 1, 2, 3},
                      WindowCase{{4, 5}, {2, 2}, {2, 2}, {}, {}, 1, 3, 5, DType::Float64},
                      // Lines in several blocks, with and without lines in common.
                      WindowCase{{70, 50}, {2, 2}, {2, 2}, {}, {}, 1, 2, 32},
                      WindowCase{{40, 31}, {5, 4}, {2, 3}, {1, 2}, {2, 3, 1, 0}, 2, 4, 64},
                      WindowCase{{2, 40, 33}, {2, 3, 3}, {1, 3, 1}, {1, 2, 2}, {}, 1, 2, 16},
                      // Phases of the last dimension in registers, and more than these hold.
                      WindowCase{{37}, {7}, {5}, {}, {2, 1}, 1, 5, 9},
                      WindowCase{{70}, {16}, {8}, {}, {4, 4}, 1, 20, 3},
                      WindowCase{{35}, {11}, {9}, {}, {1, 0}, 1, 3, 4},
                      WindowCase{{3, 40}, {2, 6}, {2, 6}, {}, {}, 1, 3, 4},
                      WindowCase{{9, 20}, {4, 4}, {2, 2}, {}, {1, 1, 1, 1}, 1, 40, 30},
                      // Whole vectors, whose last elements some taps read and others do not.
                      WindowCase{{5, 32}, {4, 4}, {2, 2}, {}, {1, 1, 1, 1}, 1, 3, 2},
                      WindowCase{{64}, {6}, {3}, {}, {2, 1}, 1, 3, 2},
                      // Channels on their own.
                      WindowCase{{9, 37}, {3, 4}, {2, 2}, {}, {1, 1, 0, 1}, 6, 6, 12},
                      WindowCase{{50, 60}, {2, 2}, {2, 2}, {}, {}, 3, 3, 3, DType::Float64},
                      // Columns that no tap reaches, and taps that fall outside.
                      WindowCase{{6, 7}, {1, 2}, {3, 4}, {}, {}, 1, 2, 3},
                      WindowCase{{8, 9}, {7, 6}, {1, 2}, {}, {6, 5, 6, 4}, 1, 2, 3}));

TEST(ConvTransposeSizes, OutputPaddingAndShape) {
  Tensor x = random_tensor(DType::Float32, {1, 1, 3, 3}, 1);
  Tensor w = random_tensor(DType::Float32, {1, 2, 3, 3}, 1);
  ir::Attributes padded{{"strides", Ints{3, 2}}, {"output_padding", Ints{1, 1}}};
  EXPECT_EQ(run_node({"ConvTranspose", {x, w}, padded})[0].dims(), (Dims{1, 2, 10, 8}));
  ir::Attributes shaped{{"strides", Ints{3, 2}}, {"output_shape", Ints{10, 8}}};
  EXPECT_EQ(run_node({"ConvTranspose", {x, w}, shaped})[0].dims(), (Dims{1, 2, 10, 8}));
  ir::Attributes same{{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}};
  EXPECT_EQ(run_node({"ConvTranspose", {x, w}, same})[0].dims(), (Dims{1, 2, 6, 6}));
}

class Pool : public ::testing::TestWithParam<WindowCase> {};

TEST_P(Pool, MatchesTheDefinition) {
  const WindowCase& test = GetParam();
  Tensor x = random_tensor(test.dtype, with_channels(2, test.channels, test.input), 5, 1001);
  auto maximum = run_node({"MaxPool", {x}, test.attributes(), 2});
  Tensor plain_maximum = run_node({"MaxPool", {x}, test.attributes()})[0];
  Tensor mean = run_node({"AveragePool", {x}, test.attributes()})[0];
  ir::Attributes include = test.attributes();
  include["count_include_pad"] = int64_t{1};
  Tensor padded_mean = run_node({"AveragePool", {x}, include})[0];
  const auto largest = values_of(maximum[0]), plain = values_of(plain_maximum),
             places = values_of(maximum[1]), means = values_of(mean),
             padded_means = values_of(padded_mean);

  Ints output = spatial_of(mean), begin = begin_of(test, output);
  int64_t in = element_count(test.input), out = element_count(output);
  auto xs = values_of(x);
  for (int64_t plane = 0; plane < 2 * test.channels; ++plane) {
    std::vector<double> best(out, -std::numeric_limits<double>::infinity()), sum(out), count(out),
        padded_count(out);
    std::vector<int64_t> where(out, -1);
    for_each_tap(test, output, begin, [&](int64_t o, int64_t, int64_t i, bool padded) {
      padded_count[o] += padded;
      if (i < 0) return;
      double value = xs[plane * in + i];
      sum[o] += value;
      ++count[o];
      if (value > best[o]) where[o] = plane * in + i;
      best[o] = std::max(best[o], value);
    });
    for (int64_t o = 0; o < out; ++o) {
      int64_t at = plane * out + o;
      ASSERT_EQ(largest[at], best[o]);
      ASSERT_EQ(plain[at], best[o]);
      ASSERT_EQ(places[at], static_cast<double>(where[o]));
      double tolerance = size_of(test.dtype) == 2 ? 0.05 : 1e-5;
      ASSERT_NEAR(means[at], sum[o] / count[o], tolerance);
      if (test.auto_pad.empty()) {
        ASSERT_NEAR(padded_means[at], sum[o] / padded_count[o], tolerance);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Pool,
    ::testing::Values(
        WindowCase{{9}, {3}, {2}, {}, {1, 1}}, WindowCase{{6, 7}, {2, 3}, {2, 2}, {}, {}},
        WindowCase{{6, 7}, {3, 3}, {2, 2}, {}, {1, 1, 1, 1}},
        WindowCase{{7, 7}, {3, 3}, {1, 2}, {2, 1}, {1, 0, 1, 1}},
        WindowCase{{5, 6, 4}, {2, 2, 2}, {2, 2, 2}, {}, {}},
        WindowCase{{6, 7}, {3, 3}, {2, 2}, {}, {}, 1, 2, 4, DType::Float16},
        WindowCase{{6, 7}, {3, 3}, {2, 3}, {}, {}, 1, 2, 4, DType::Float64, "SAME_UPPER"},
        WindowCase{{6, 6}, {3, 3}, {2, 2}, {}, {}, 1, 2, 4, DType::Float32, "", true},
        WindowCase{{6, 7}, {3, 3}, {3, 2}, {}, {1, 1, 1, 1}, 1, 2, 4, DType::Float32, "", true},
        // Kernels larger than the input and its padding.
        WindowCase{{7, 5}, {2560, 2560}, {2560, 2560}, {}, {}, 1, 2, 4, DType::Float32, "", true},
        WindowCase{{6, 7}, {4, 3}, {9, 2}, {3, 2}, {2, 1, 1, 0}, 1, 2, 4, DType::Float16, "", true},
        // Planes in several bands, wide windows, columns in two and in more phases.
        WindowCase{{90, 70}, {2, 2}, {1, 1}, {}, {}, 1, 2, 4, DType::Float32, "SAME_UPPER"},
        WindowCase{{13, 13}, {13, 13}, {1, 1}, {}, {6, 6, 6, 6}},
        WindowCase{{101, 67}, {5, 3}, {2, 2}, {}, {2, 1, 2, 1}},
        WindowCase{{31, 200}, {3, 7}, {1, 3}, {2, 2}, {1, 2, 3, 6}},
        WindowCase{{3, 40, 60}, {2, 3, 4}, {1, 2, 5}, {1, 1, 2}, {1, 1, 1, 0, 2, 3}},
        WindowCase{{40, 50}, {1, 1}, {2, 4}, {}, {}},
        // Many small planes at once, with few and with many lines between their results.
        WindowCase{{4, 4}, {3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 1, 200},
        WindowCase{{3, 5, 4}, {3, 3, 3}, {2, 2, 1}, {}, {1, 1, 1, 1, 1, 1}, 1, 90},
        WindowCase{{20, 9}, {19, 2}, {1, 3}, {}, {}, 1, 40},
        WindowCase{{30, 6}, {4, 2}, {3, 1}, {7, 1}, {5, 1, 5, 0}, 1, 40},
        // Lines of a vector of results and less, and of one element more.
        WindowCase{{5, 16}, {3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 1, 5},
        WindowCase{{5, 17}, {3, 3}, {1, 1}, {}, {1, 1, 1, 1}, 1, 5},
        WindowCase{{7, 8}, {3, 3}, {3, 3}, {1, 2}, {1, 2, 1, 2}, 1, 20, 4, DType::Float64},
        WindowCase{{14, 14}, {3, 3}, {2, 2}, {}, {}, 1, 40, 4, DType::Float32, "", true},
        // Lines in several blocks of columns.
        WindowCase{{5000}, {3}, {2}, {}, {1, 1}}, WindowCase{{2500}, {4}, {1}, {3}, {4, 5}},
        WindowCase{{2, 4400}, {2, 5}, {1, 3}, {}, {0, 2, 1, 2}},
        // Sums in parts.
        WindowCase{{700}, {600}, {2}, {}, {}}, WindowCase{{300, 9}, {270, 2}, {1, 1}, {}, {}}));

// Bytes, and NaN, which wins over numbers wherever a window has it.
TEST(PoolDetails, LargestOfBytesAndNaN) {
  const WindowCase test{{9, 21}, {3, 4}, {2, 2}, {}, {1, 2, 1, 1}};
  constexpr int64_t kNaN = 100;  // where it is
  for (const DType dtype : {DType::Int8, DType::UInt8, DType::Float32, DType::Float64}) {
    const bool floating = dtype == DType::Float32 || dtype == DType::Float64;
    std::vector<float> values(9 * 21);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101);
    if (floating) values[kNaN] = std::numeric_limits<float>::quiet_NaN();
    const Tensor x = make_tensor(dtype, {1, 1, 9, 21}, values);
    const auto largest = values_of(run_node({"MaxPool", {x}, test.attributes()})[0]);
    std::vector<double> expected(largest.size(), -1);
    for_each_tap(test, {5, 11}, {1, 2}, [&](int64_t o, int64_t, int64_t i, bool) {
      if (i < 0 || std::isnan(expected[o])) return;
      expected[o] = std::isnan(values[i]) ? NAN : std::max<double>(expected[o], values[i]);
    });
    for (size_t o = 0; o < largest.size(); ++o) {
      EXPECT_EQ(std::isnan(largest[o]), std::isnan(expected[o])) << o;
      if (!std::isnan(expected[o])) {
        EXPECT_EQ(largest[o], expected[o]) << o;
      }
    }
  }
}

TEST(PoolDetails, ColumnMajorIndicesAndBytes) {
  Tensor x = make_tensor<int>(DType::UInt8, {1, 1, 2, 3}, {1, 5, 2, 7, 3, 4});
  ir::Attributes attributes{{"kernel_shape", Ints{2, 2}}, {"storage_order", int64_t{1}}};
  auto y = run_node({"MaxPool", {x}, attributes, 2});
  expect_values(y[0], {1, 1, 1, 2}, {7, 5});
  expect_values(y[1], {1, 1, 1, 2}, {1, 2});
  ir::Attributes l2{{"kernel_shape", Ints{2}}, {"p", int64_t{2}}};
  expect_values(run_node({"LpPool", {floats({1, 1, 3}, {3, 4, 0})}, l2})[0], {1, 1, 2}, {5, 4},
                1e-6);
}

TEST(IntegerProducts, ConvInteger) {
  Tensor x = make_tensor<int>(DType::UInt8, {1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10});
  Tensor w = make_tensor<int>(DType::UInt8, {1, 1, 2, 2}, {1, 1, 1, 1});
  Tensor zero = make_tensor<int>(DType::UInt8, {}, {1});
  expect_values(run_node({"ConvInteger", {x, w, zero}})[0], {1, 1, 2, 2}, {12, 16, 24, 28});
  ir::Attributes pads{{"pads", Ints{1, 1, 1, 1}}};
  expect_values(run_node({"ConvInteger", {x, w, zero}, pads})[0], {1, 1, 4, 4},
                {1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9});
}

}  // namespace
}  // namespace redfuser::testing
