// Filters of bytes and the quantisation of sums by the kernels of every instruction set of this
// machine, bit for bit against their definitions.
#include "cpu/simd/integers/byte_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "cpu/opaque/image/integers/byte_words.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

struct Case {
  int64_t lines, columns, kernel_lines, kernel_columns, step, dilation;
};

constexpr Case kCases[] = {{1, 1, 1, 1, 1, 1},  {7, 7, 3, 3, 1, 1},  {14, 14, 5, 5, 1, 1},
                           {5, 16, 3, 3, 2, 1}, {3, 41, 1, 9, 1, 3}, {2, 19, 3, 3, 4, 1},
                           {4, 9, 2, 5, 3, 4},  {9, 3, 7, 2, 2, 5},  {1, 100, 1, 4, 1, 2}};

int64_t number(uint8_t byte, DType dtype) {
  return dtype == DType::Int8 ? static_cast<int8_t>(byte) : byte;
}

// One filter on a channel of random bytes, of which extremes are as frequent as all others.
void check_filter(const cpu::KernelTable& table, const Case& c, DType dtype, int64_t zero) {
  std::mt19937 random(static_cast<uint32_t>(31 * c.columns + c.kernel_columns));
  const auto draw = [&](uint8_t* bytes, int64_t count, uint8_t extreme) {
    for (int64_t i = 0; i < count; ++i)
      bytes[i] = random() & 1 ? extreme : static_cast<uint8_t>(random());
  };
  const int64_t pitch = (c.columns - 1) * c.step + (c.kernel_columns - 1) * c.dilation + 1;
  const int64_t rows = c.lines + c.kernel_lines - 1;
  std::vector<uint8_t> image(static_cast<size_t>(rows * pitch + cpu::kByteFilterSlack));
  draw(image.data(), rows * pitch, 255);
  Tensor w(dtype, {1, c.kernel_lines, c.kernel_columns});
  draw(static_cast<uint8_t*>(w.mutable_data()), w.size(), dtype == DType::Int8 ? 0x80 : 0xff);
  const int64_t size = cpu::ByteSpread::most_taps(c.step, c.dilation);
  ASSERT_GT(size, 0);
  const cpu::TapGroups groups{c.kernel_lines, c.kernel_columns, size};
  const cpu::ByteWords words(w, std::span(&zero, 1), groups, table.byte_filter->saturates);
  std::vector<int64_t> offsets;
  for (int64_t group = 0; group < groups.count(); ++group) {
    offsets.push_back(group / groups.across() * pitch +
                      group % groups.across() * size * c.dilation);
  }
  const cpu::FilterWords filter = words.filter(0);
  const cpu::ByteSpread spread(c.step, c.dilation);
  std::vector<int32_t> out(static_cast<size_t>(c.lines * c.columns + 1), 77);
  table.byte_filter->run({c.lines, c.columns, pitch, c.step, &spread, image.data(),
                          static_cast<int64_t>(filter.words.size()), filter.words.data(),
                          filter.numbers.data(), offsets.data(), -5, out.data()});
  for (int64_t i = 0; i < c.lines * c.columns; ++i) {
    int64_t sum = -5;
    for (int64_t t = 0; t < c.kernel_lines * c.kernel_columns; ++t) {
      const int64_t line = i / c.columns + t / c.kernel_columns;
      const int64_t column = i % c.columns * c.step + t % c.kernel_columns * c.dilation;
      sum += image[static_cast<size_t>(line * pitch + column)] *
             (number(static_cast<const uint8_t*>(w.data())[t], dtype) - zero);
    }
    ASSERT_EQ(out[static_cast<size_t>(i)], sum) << i;
  }
  EXPECT_EQ(out.back(), 77) << "beyond the output";
}

TEST(CpuByteFilter, EveryKernelIsExact) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    if (table->byte_filter == nullptr) continue;
    for (const Case& c : kCases) {
      for (const int64_t zero : {0, 128, 255}) {
        SCOPED_TRACE(testing::Message() << table->name << " " << c.lines << "x" << c.columns
                                        << " step " << c.step << " zero " << zero);
        check_filter(*table, c, DType::UInt8, zero);
        check_filter(*table, c, DType::Int8, zero == 255 ? -128 : zero % 128);
        if (HasFailure()) return;
      }
    }
  }
}

// The numbers of one trial: rows of sums with a scale and an offset of each.
struct Quantization {
  cpu::IntegerQuantizeArgs q;
  std::vector<int32_t> c;
  std::vector<double> scales, offsets;

  explicit Quantization(std::mt19937& random) {
    const double some[] = {0.0078125, 0.013, 0.25, 3.5, -0.125, 0.1f, 1e-40, 0, HUGE_VAL, NAN};
    q.rows = static_cast<int64_t>(random() % 3) + 1;
    q.count = static_cast<int64_t>(random() % 150);
    c.resize(static_cast<size_t>(q.rows * (q.count + 2)));
    for (int32_t& x : c) x = static_cast<int32_t>(random()) >> (random() % 32);
    for (int64_t i = 0; i < q.rows; ++i) {
      scales.push_back(some[random() % std::size(some)]);
      offsets.push_back(random() % 9 == 0 ? 1e5 : static_cast<double>(random() % 64) / 4);
    }
    q.c_stride = q.out_stride = q.count + 2;
    const bool is_signed = random() % 2;
    q.low = (is_signed ? -128 : 0) + static_cast<double>(random() % 2 * 9);
    q.high = (is_signed ? 127 : 255) - static_cast<double>(random() % 2 * 100);
    q.zero = static_cast<double>(random() % 256) + (is_signed ? -128 : 0);
    q.c = c.data(), q.scales = scales.data();
    q.offsets = offsets.data();
  }

  double wanted(size_t row, size_t at) const {
    double x = std::fma(c[at], scales[row], offsets[row]);
    x = (std::isnan(x) ? 0 : std::nearbyint(x)) + q.zero;
    return std::min(std::max(x, q.low), q.high);
  }
};

// Counts of whole vectors and not, bounds within those of the type, sums at the middle between two
// whole numbers, scales that are too large or small for the fast forms, and infinite and absent
// numbers.
TEST(CpuQuantize, EveryKernelIsExact) {
  std::mt19937 random(3);
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (int trial = 0; trial < 1000; ++trial) {
      Quantization each(random);
      cpu::IntegerQuantizeArgs& q = each.q;
      std::vector<uint8_t> out(each.c.size(), 77);
      std::vector<int32_t> words = each.c;
      q.out = out.data();
      table->integer[0]->quantize(q);
      q.c = words.data(), q.out = words.data();
      table->quantize_words(q);
      for (size_t at = 0; at < out.size(); ++at) {
        const size_t row = at / static_cast<size_t>(q.c_stride);
        if (static_cast<int64_t>(at) % q.c_stride >= q.count) {
          ASSERT_EQ(out[at], 77) << "beyond a row";
          ASSERT_EQ(words[at], each.c[at]) << "beyond a row";
          continue;
        }
        const auto wanted = static_cast<int32_t>(each.wanted(row, at));
        ASSERT_EQ(out[at], static_cast<uint8_t>(wanted))
            << table->name << " " << each.c[at] << " * " << each.scales[row] << " + "
            << each.offsets[row];
        ASSERT_EQ(words[at], wanted) << table->name;
      }
    }
  }
}

// Sums around each middle between two whole numbers, at every scale of a fraction and offset.
TEST(CpuQuantize, MiddlesAreExact) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> small(1e-6, 0.25), shift(-300, 300);
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (int trial = 0; trial < 2000; ++trial) {
      cpu::IntegerQuantizeArgs q;
      const double scale = small(random), offset = shift(random);
      std::vector<int32_t> c(256);
      for (size_t i = 0; i < c.size(); ++i)
        c[i] = static_cast<int32_t>(std::lround((static_cast<double>(i) - 0.5 - offset) / scale));
      std::vector<uint8_t> out(c.size());
      q.count = 256, q.c = c.data(), q.out = out.data();
      q.scales = &scale, q.offsets = &offset;
      table->integer[0]->quantize(q);
      for (size_t i = 0; i < c.size(); ++i) {
        const double x = std::nearbyint(std::fma(c[i], scale, offset));
        ASSERT_EQ(out[i], std::min(std::max(x, 0.0), 255.0)) << table->name << " " << c[i];
      }
    }
  }
}

// A second quantisation with bytes of either sign, factors that are too large or small for the fast
// form, and sums at the middle between two whole numbers.
TEST(CpuQuantize, TwiceIsExact) {
  std::mt19937 random(7);
  const double factors[] = {0.5, 0.25, -0.125, 1, 0.37f, 1.0625f, 300, 1e-40};
  for (const cpu::KernelTable* table : kernel_tables()) {
    for (int trial = 0; trial < 2000; ++trial) {
      Quantization each(random);
      cpu::IntegerQuantizeArgs& q = each.q;
      std::vector<uint8_t> out(each.c.size(), 77), bytes(each.c.size());
      for (uint8_t& x : bytes) x = static_cast<uint8_t>(random());
      cpu::IntegerResidual rest{bytes.data(), q.c_stride, random() % 2 == 0};
      rest.first = factors[random() % std::size(factors)];
      rest.second = factors[random() % std::size(factors)];
      rest.offset = static_cast<double>(random() % 4096) / 8 - 256;
      const bool is_signed = random() % 2 == 0;
      rest.low = is_signed ? -128 : 0, rest.high = rest.low + 255;
      rest.zero = static_cast<double>(random() % 200) + rest.low;
      q.residual = &rest, q.out = out.data();
      table->integer[0]->quantize(q);
      for (size_t at = 0; at < out.size(); ++at) {
        if (static_cast<int64_t>(at) % q.c_stride >= q.count) {
          ASSERT_EQ(out[at], 77) << "beyond a row";
          continue;
        }
        const double code = each.wanted(at / static_cast<size_t>(q.c_stride), at);
        const double r = rest.is_signed ? static_cast<int8_t>(bytes[at]) : bytes[at];
        const double x = std::nearbyint(code * rest.first + r * rest.second + rest.offset);
        const double wanted = std::min(std::max(x + rest.zero, rest.low), rest.high);
        ASSERT_EQ(out[at], static_cast<uint8_t>(static_cast<int32_t>(wanted)))
            << table->name << " " << code << " * " << rest.first << " + " << r << " * "
            << rest.second << " + " << rest.offset;
      }
    }
  }
}

}  // namespace
}  // namespace redfuser
