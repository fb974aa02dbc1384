// Quotients and remainders of every instruction set: exact, for any operands.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "cpu/simd/kernel_table.h"
#include "ir/scalars/integers.h"
#include "support/kernel_tables.h"

namespace redfuser {
namespace {

using cpu::BinaryOp;
using cpu::Elem;

// Ordinary numbers, multiples of each other and their neighbours, and what has no quotient.
template <typename T>
std::vector<T> numbers(std::mt19937& random, size_t count) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result;
  while (result.size() < count) {
    const auto whole = static_cast<T>(static_cast<int64_t>(random() % 4096) - 2048);
    const T scaled = std::ldexp(static_cast<T>(random()), static_cast<int>(random() % 60) - 60);
    const T choices[] = {whole,       scaled,  std::nextafter(whole, Limits::max()),
                         whole / 64,  -scaled, std::nextafter(whole, Limits::lowest()),
                         whole * 4096};
    const T special[] = {0,
                         -T(0),
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::min(),
                         Limits::denorm_min(),
                         Limits::max()};
    result.push_back(random() % 40 == 0 ? special[random() % std::size(special)]
                                        : choices[random() % std::size(choices)]);
  }
  return result;
}

template <typename T>
T remainder_of(BinaryOp op, T x, T y) {
  const T r = std::fmod(x, y);
  const bool moves = op == BinaryOp::FloorMod && r != 0 && (r < 0) != (y < 0);
  return moves ? r + y : r;
}

template <typename T>
void expect_remainders(const cpu::KernelTable& table, Elem elem) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const size_t count = 1 + random() % 150;
    const std::vector<T> x = numbers<T>(random, count), y = numbers<T>(random, count);
    for (const BinaryOp op : {BinaryOp::TruncMod, BinaryOp::FloorMod}) {
      for (int mode = 0; mode < cpu::kModes; ++mode) {
        std::vector<T> out(count);
        table.binary[static_cast<int>(elem)][static_cast<int>(op)][mode](
            1, static_cast<int64_t>(count), out.data(), 0, {x.data()}, {y.data()});
        for (size_t i = 0; i < count; ++i) {
          const T a = x[mode == 2 ? 0 : i], b = y[mode == 1 ? 0 : i];
          const T expected = remainder_of(op, a, b);
          if (std::isnan(expected)) {
            EXPECT_TRUE(std::isnan(out[i])) << a << " and " << b;
            continue;
          }
          ASSERT_EQ(out[i], expected) << table.name << ": " << a << " and " << b;
          ASSERT_EQ(std::signbit(out[i]), std::signbit(expected)) << a << " and " << b;
        }
      }
    }
  }
}

TEST(Quotient, RemaindersOfFloatsAreExact) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    expect_remainders<float>(*table, Elem::F32);
    expect_remainders<double>(*table, Elem::F64);
  }
}

// By the bits: zeros have a sign.
template <typename T>
void expect_quotients(const cpu::KernelTable& table, Elem elem) {
  std::mt19937 random(7);
  const auto any_exponent = [&] {
    const int exponent = static_cast<int>(random() % 300) - 150;
    return std::ldexp(static_cast<T>(random()) + static_cast<T>(0.25), exponent - 31);
  };
  for (int round = 0; round < 4000; ++round) {
    const size_t count = 1 + random() % 150;
    std::vector<T> x = numbers<T>(random, count), y = numbers<T>(random, count);
    if (round % 4 != 0) y[0] = any_exponent();
    if (round % 4 == 1) y[0] = static_cast<T>(random() % 100000);
    // Few rows are without an element that is divided.
    for (T& e : x) e = round % 8 == 0 ? e : any_exponent() * static_cast<T>(random() % 64 ? 1 : 0);
    for (int mode = 0; mode < cpu::kModes; ++mode) {
      std::vector<T> out(count);
      table.binary[static_cast<int>(elem)][static_cast<int>(BinaryOp::Div)][mode](
          1, static_cast<int64_t>(count), out.data(), 0, {x.data()}, {y.data()});
      for (size_t i = 0; i < count; ++i) {
        const T a = x[mode == 2 ? 0 : i], b = y[mode == 1 ? 0 : i], expected = a / b;
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(out[i])) << a << " / " << b;
          continue;
        }
        ASSERT_EQ(std::memcmp(&out[i], &expected, sizeof(T)), 0)
            << table.name << ": " << a << " / " << b << " is " << expected << ", not " << out[i];
      }
    }
  }
}

TEST(Quotient, FloatsAreThoseOfTheDivision) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    expect_quotients<float>(*table, Elem::F32);
    expect_quotients<double>(*table, Elem::F64);
  }
}

// Of any size, around 2^52 and at the ends.
template <typename T>
std::vector<T> integers(std::mt19937& random, size_t count, bool large) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result;
  while (result.size() < count) {
    const uint64_t bits = (uint64_t{random()} << 32 | random()) >> (random() % 64);
    const auto near = static_cast<T>((uint64_t{1} << 52) + random() % 3 - 1);
    const T special[] = {0, 1, static_cast<T>(-1), Limits::max(), Limits::lowest(), near};
    const auto small = static_cast<T>(static_cast<int64_t>(random() % 2000) - 1000);
    const bool any = large && random() % 4 == 0;
    result.push_back(
        any ? random() % 2 ? special[random() % std::size(special)] : static_cast<T>(bits) : small);
  }
  return result;
}

template <typename T>
void expect_integers(const cpu::KernelTable& table, Elem elem, DType dtype) {
  constexpr std::pair<BinaryOp, ir::ExprOp> kOps[] = {{BinaryOp::Div, ir::ExprOp::Div},
                                                      {BinaryOp::TruncMod, ir::ExprOp::TruncMod},
                                                      {BinaryOp::FloorDiv, ir::ExprOp::FloorDiv},
                                                      {BinaryOp::FloorMod, ir::ExprOp::FloorMod}};
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    const size_t count = 1 + random() % 150;
    const std::vector<T> x = integers<T>(random, count, round % 2),
                         y = integers<T>(random, count, round % 3);
    for (const auto& [op, meaning] : kOps) {
      for (int mode = 0; mode < cpu::kModes; ++mode) {
        std::vector<T> out(count);
        table.binary[static_cast<int>(elem)][static_cast<int>(op)][mode](
            1, static_cast<int64_t>(count), out.data(), 0, {x.data()}, {y.data()});
        for (size_t i = 0; i < count; ++i) {
          const T a = x[mode == 2 ? 0 : i], b = y[mode == 1 ? 0 : i];
          const auto expected =
              ir::word_operation(meaning, dtype, static_cast<int64_t>(a), static_cast<int64_t>(b));
          ASSERT_EQ(static_cast<int64_t>(out[i]), *expected)
              << table.name << " " << name_of(dtype) << ", operation " << static_cast<int>(op)
              << ": " << a << " and " << b;
        }
      }
    }
  }
}

TEST(Quotient, IntegersAreExact) {
  for (const cpu::KernelTable* table : kernel_tables()) {
    expect_integers<int32_t>(*table, Elem::I32, DType::Int32);
    expect_integers<int64_t>(*table, Elem::I64, DType::Int64);
    expect_integers<uint64_t>(*table, Elem::U64, DType::UInt64);
  }
}

}  // namespace
}  // namespace redfuser
