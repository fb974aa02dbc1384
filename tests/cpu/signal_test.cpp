// Fourier transforms against sums over all points, with phases reduced as integers.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "support/opaque_harness.h"

namespace redfuser::testing {
namespace {

using Complex = std::complex<double>;
using Points = std::vector<Complex>;

struct Rounding {
  DType dtype;
  double unit;  // of results, as part of the greatest one
};
constexpr Rounding kRoundings[] = {
    {DType::Float64, 1e-14}, {DType::Float32, 0x1p-24}, {DType::Float16, 0x1p-11}};

// Powers of two, products of small primes, primes, twice a prime, squares.
constexpr int64_t kLengths[] = {1, 2, 3, 5, 8, 11, 13, 14, 49, 121, 400, 512, 1000, 1021, 2042};

Complex bin(const Points& x, int64_t k, int sign) {
  const auto n = static_cast<int64_t>(x.size());
  Complex sum = 0;
  for (int64_t t = 0; t < n; ++t) {
    const double angle = 2 * M_PI * static_cast<double>(k * t % n) / static_cast<double>(n);
    sum += x[static_cast<size_t>(t)] * Complex(std::cos(angle), sign * std::sin(angle));
  }
  return sum;
}

// A few bins, the first, the middle and the last ones among them.
std::vector<int64_t> some_bins(int64_t count) {
  std::vector<int64_t> bins;
  for (int64_t k = 0; k < count; k += std::max<int64_t>(count / 7, 1)) bins.push_back(k);
  for (const int64_t k : {count / 2, count - 1}) bins.push_back(k);
  return bins;
}

Tensor drawn(std::mt19937& random, DType dtype, const Dims& dims) {
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (double& v : values) v = std::normal_distribution<double>()(random);
  return make_tensor<double>(dtype, dims, values);
}

// Point `at` of a list of numbers in so many parts.
Complex point(const std::vector<double>& values, int64_t at, int64_t parts) {
  const auto first = static_cast<size_t>(at * parts);
  return {values[first], parts == 2 ? values[first + 1] : 0};
}

void expect_bin(const std::vector<double>& y, int64_t at, int64_t parts, Complex expected,
                double tolerance) {
  const Complex actual = point(y, at, parts);
  EXPECT_NEAR(actual.real(), expected.real(), tolerance) << "bin " << at;
  if (parts == 1) return;
  EXPECT_NEAR(actual.imag(), expected.imag(), tolerance) << "bin " << at;
}

struct SignalCase {
  int64_t parts, onesided;
};

class Stft : public ::testing::TestWithParam<int64_t> {};

TEST_P(Stft, IsTheSumOfItsFrames) {
  const int64_t length = GetParam();
  std::mt19937 random(static_cast<unsigned>(length));
  for (const Rounding& rounding : kRoundings) {
    for (const SignalCase c : {SignalCase{1, 1}, SignalCase{1, 0}, SignalCase{2, 0}}) {
      const int64_t step = 1 + static_cast<int64_t>(random() % (2 * static_cast<uint64_t>(length)));
      const int64_t frames = 6, samples = length + (frames - 1) * step + step / 2;
      const Tensor x = drawn(random, rounding.dtype, {2, samples, c.parts}),
                   window = drawn(random, rounding.dtype, {length});
      const Tensor y = run_node({"STFT",
                                 {x, integers({}, {step}), window, integers({}, {length})},
                                 {{"onesided", c.onesided}}})[0];
      const int64_t bins = c.onesided != 0 ? length / 2 + 1 : length;
      ASSERT_EQ(y.dims(), (Dims{2, frames, bins, 2}));
      const auto given = values_of(x), weights = values_of(window), results = values_of(y);
      for (int64_t frame = 0; frame < 2 * frames; ++frame) {
        Points points;
        double norm = 0;
        for (int64_t t = 0; t < length; ++t) {
          const int64_t at = frame / frames * samples + frame % frames * step + t;
          points.push_back(point(given, at, c.parts) * weights[static_cast<size_t>(t)]);
          norm += std::norm(points.back());
        }
        const double tolerance = rounding.unit * 4 * std::sqrt(norm);
        for (const int64_t k : some_bins(bins)) {
          expect_bin(results, frame * bins + k, 2, bin(points, k, -1), tolerance);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, Stft, ::testing::ValuesIn(kLengths));

// Frames share vectors but not values.
TEST(Signal, FramesAreIndependent) {
  std::vector<double> values(64, 0);
  values[20] = std::numeric_limits<double>::infinity();
  values[60] = 1;
  const Tensor y = run_node({"STFT",
                             {make_tensor(DType::Float32, {1, 64}, values), integers({}, {8}),
                              Tensor(), integers({}, {8})}})[0];
  const auto results = values_of(y);
  for (size_t i = 0; i < results.size(); ++i) {
    const size_t frame = i / 10;
    if (frame == 2) continue;
    if (frame == 7) {
      EXPECT_TRUE(std::isfinite(results[i])) << i;
    } else {
      EXPECT_EQ(results[i], 0) << i;
    }
  }
}

struct DftCase {
  int64_t parts, onesided, inverse;
};

// Along dimension 1, in the opset that has the axis as an attribute.
Tensor dft(const Tensor& x, int64_t length, const DftCase& c) {
  return run_node({"DFT",
                   {x, integers({}, {length})},
                   {{"axis", int64_t{1}}, {"onesided", c.onesided}, {"inverse", c.inverse}},
                   1,
                   17})[0];
}

class Dft : public ::testing::TestWithParam<int64_t> {};

// Along the middle axis of [2, given, 3, parts], which the length cuts or fills with zeros.
TEST_P(Dft, IsTheSumOfTheLine) {
  const int64_t length = GetParam();
  std::mt19937 random(static_cast<unsigned>(length));
  for (const Rounding& rounding : kRoundings) {
    for (const DftCase c : {DftCase{1, 1, 0}, DftCase{1, 0, 0}, DftCase{2, 0, 0}, DftCase{1, 0, 1},
                            DftCase{2, 0, 1}}) {
      const int64_t given = std::max<int64_t>(length + static_cast<int64_t>(random() % 5) - 2, 1);
      const Tensor x = drawn(random, rounding.dtype, {2, given, 3, c.parts});
      const Tensor y = dft(x, length, c);
      const int64_t bins = c.onesided != 0 ? length / 2 + 1 : length;
      ASSERT_EQ(y.dims(), (Dims{2, bins, 3, 2}));
      const auto values = values_of(x), results = values_of(y);
      for (int64_t line = 0; line < 6; ++line) {
        Points points(static_cast<size_t>(length));
        double norm = 0;
        for (int64_t t = 0; t < std::min(given, length); ++t) {
          const int64_t at = (line / 3 * given + t) * 3 + line % 3;
          norm += std::norm(points[static_cast<size_t>(t)] = point(values, at, c.parts));
        }
        const double scale = c.inverse != 0 ? static_cast<double>(length) : 1;
        for (const int64_t k : some_bins(bins)) {
          expect_bin(results, (line / 3 * bins + k) * 3 + line % 3, 2,
                     bin(points, k, c.inverse != 0 ? 1 : -1) / scale,
                     rounding.unit * 4 * std::sqrt(norm) / scale);
        }
      }
    }
  }
}

// Half a spectrum gives back its real signal.
TEST_P(Dft, OneSidedInverseIsTheSignal) {
  const int64_t length = GetParam();
  std::mt19937 random(static_cast<unsigned>(length));
  const Tensor x = drawn(random, DType::Float64, {2, length, 1});
  const Tensor y = dft(dft(x, length, {1, 1, 0}), length, {2, 1, 1});
  expect_values(y, x.dims(), values_of(x), 1e-13);
}

INSTANTIATE_TEST_SUITE_P(Lengths, Dft, ::testing::ValuesIn(kLengths));

}  // namespace
}  // namespace redfuser::testing
