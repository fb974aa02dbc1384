// Integer elements: operations on words against exact arithmetic of 128 bits, and what expressions
// of them fold to.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/evaluate.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ir/scalars/integers.h"
#include "support/graph_builder.h"

namespace redfuser {
namespace {

using Exact = __int128;

const DType kTypes[] = {DType::Int2,  DType::UInt2,  DType::Int4,   DType::UInt4,
                        DType::Int8,  DType::Int16,  DType::Int32,  DType::Int64,
                        DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64};

Exact exact(DType dtype, int64_t word) {
  return dtype == DType::UInt64 ? static_cast<Exact>(static_cast<uint64_t>(word)) : word;
}

std::vector<int64_t> edges(DType dtype) {
  std::set<int64_t> words;
  for (const int64_t offset : {0, 1, 2, 7}) {
    for (const int64_t base : {int64_t{0}, ir::lowest_word(dtype), ir::highest_word(dtype) / 2}) {
      words.insert(ir::wrapped_word(dtype, base + offset));
    }
    words.insert(ir::wrapped_word(
        dtype, static_cast<int64_t>(static_cast<uint64_t>(ir::highest_word(dtype)) -
                                    static_cast<uint64_t>(offset))));
    words.insert(ir::wrapped_word(dtype, -offset));
  }
  return {words.begin(), words.end()};
}

Exact floor_quotient(Exact a, Exact b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// The exact result, which is taken modulo 2^bits; nullopt for what is not tested here.
std::optional<Exact> result(ir::ExprOp op, Exact a, Exact b) {
  switch (op) {
    case ir::ExprOp::Add:
      return a + b;
    case ir::ExprOp::Sub:
      return a - b;
    case ir::ExprOp::Mul:
      return static_cast<Exact>(static_cast<unsigned __int128>(a) *
                                static_cast<unsigned __int128>(b));
    case ir::ExprOp::Div:
      return b == 0 ? 0 : a / b;
    case ir::ExprOp::FloorDiv:
      return b == 0 ? 0 : floor_quotient(a, b);
    case ir::ExprOp::FloorMod:
      return b == 0 ? 0 : a - b * floor_quotient(a, b);
    case ir::ExprOp::TruncMod:
      return b == 0 ? 0 : a % b;
    case ir::ExprOp::Min:
      return std::min(a, b);
    case ir::ExprOp::Max:
      return std::max(a, b);
    case ir::ExprOp::Less:
      return a < b;
    case ir::ExprOp::LessEqual:
      return a <= b;
    case ir::ExprOp::Equal:
      return a == b;
    default:
      return std::nullopt;
  }
}

const ir::ExprOp kBinary[] = {ir::ExprOp::Add,      ir::ExprOp::Sub,       ir::ExprOp::Mul,
                              ir::ExprOp::Div,      ir::ExprOp::FloorDiv,  ir::ExprOp::FloorMod,
                              ir::ExprOp::TruncMod, ir::ExprOp::Min,       ir::ExprOp::Max,
                              ir::ExprOp::Less,     ir::ExprOp::LessEqual, ir::ExprOp::Equal};

class Integers : public ::testing::TestWithParam<DType> {};

TEST_P(Integers, AreExactModuloTheirBits) {
  const DType dtype = GetParam();
  for (const int64_t a : edges(dtype)) {
    for (const int64_t b : edges(dtype)) {
      for (const ir::ExprOp op : kBinary) {
        const Exact expected = *result(op, exact(dtype, a), exact(dtype, b));
        ASSERT_EQ(*word_operation(op, dtype, a, b),
                  ir::wrapped_word(dtype, static_cast<int64_t>(expected)))
            << "operation " << static_cast<int>(op) << " of " << a << " and " << b;
      }
    }
    const Exact x = exact(dtype, a), size = x < 0 ? -x : x;
    ASSERT_EQ(*word_operation(ir::ExprOp::Neg, dtype, a),
              ir::wrapped_word(dtype, static_cast<int64_t>(-x)));
    ASSERT_EQ(*word_operation(ir::ExprOp::Abs, dtype, a),
              ir::wrapped_word(dtype, static_cast<int64_t>(size)));
    ASSERT_EQ(*word_operation(ir::ExprOp::Sign, dtype, a), ir::wrapped_word(dtype, x > 0   ? 1
                                                                                   : x < 0 ? -1
                                                                                           : 0));
    ASSERT_EQ(ir::number_of_word(dtype, a), static_cast<double>(x));
  }
}

TEST_P(Integers, ShiftsAndPowersWrapAround) {
  const DType dtype = GetParam();
  for (const int64_t a : edges(dtype)) {
    if (!ir::is_unsigned(dtype)) continue;
    for (const int64_t by : {int64_t{0}, int64_t{1}, int64_t{bits_of(dtype) - 1}}) {
      if (ir::wrapped_word(dtype, by) != by) continue;
      const auto x = static_cast<uint64_t>(a);
      ASSERT_EQ(*word_operation(ir::ExprOp::ShiftRight, dtype, a, by),
                static_cast<int64_t>(x >> by));
      ASSERT_EQ(*word_operation(ir::ExprOp::ShiftLeft, dtype, a, by),
                ir::wrapped_word(dtype, static_cast<int64_t>(x << by)));
    }
    ASSERT_EQ(*word_operation(ir::ExprOp::ShiftRight, DType::UInt64, a, 64), 0);
    ASSERT_EQ(*word_operation(ir::ExprOp::ShiftLeft, DType::UInt64, a, -1), 0);
  }
  const int64_t three = ir::wrapped_word(dtype, 3);
  int64_t power = 1;
  for (int64_t exponent = 0; ir::wrapped_word(dtype, exponent) == exponent && exponent < 50;
       ++exponent) {
    ASSERT_EQ(*word_operation(ir::ExprOp::Pow, dtype, three, exponent), power);
    power = *word_operation(ir::ExprOp::Mul, dtype, power, three);
  }
}

// The reference in double precision and the folding of constants give the same numbers.
TEST_P(Integers, FoldAsTheReferenceEvaluates) {
  const DType dtype = GetParam();
  ir::ExprPool pool;
  for (const int64_t a : edges(dtype)) {
    for (const int64_t b : edges(dtype)) {
      for (const ir::ExprOp op : kBinary) {
        const bool size = dtype == DType::Int64 && is_modular(op);
        if (size || (b == 0 && op >= ir::ExprOp::Div && op <= ir::ExprOp::TruncMod)) continue;
        ir::Expr folded = pool.make(op, {pool.number_int(a, dtype), pool.number_int(b, dtype)});
        ASSERT_TRUE(folded->is_constant());
        ASSERT_EQ(folded->integer, *word_operation(op, dtype, a, b));
        if (bits_of(dtype) == 64) continue;
        ir::Expr x = pool.leaf(ir::LeafKind::State, 0, dtype),
                 y = pool.leaf(ir::LeafKind::State, 1, dtype);
        const double value = evaluate(pool.make(op, {x, y}), [&](ir::Expr leaf) {
          return ir::number_of_word(dtype, leaf == x ? a : b);
        });
        ASSERT_EQ(value, static_cast<double>(folded->integer));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Integers, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(IntegerCasts, AreThoseOfTheTypesAtHand) {
  struct Case {
    double number;
    DType dtype;
    int64_t word;
  };
  const Case cases[] = {
      {-1, DType::UInt8, 255},
      {300.7, DType::UInt8, 44},
      {3e9, DType::Int8, 0},
      {3e9, DType::Int32, INT32_MIN},
      {-2147483648.5, DType::Int32, INT32_MIN},
      {3e9, DType::UInt32, 3000000000},
      {NAN, DType::Int32, INT32_MIN},
      {NAN, DType::Int64, INT64_MIN},
      {0x1p63, DType::Int64, INT64_MIN},
      {0x1p63, DType::UInt64, INT64_MIN},
      {0x1.8p63, DType::UInt64, INT64_MIN + (int64_t{1} << 62)},
      {0x1p64, DType::UInt64, 0},
      {-1, DType::UInt64, -1},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(ir::word_of_number(c.dtype, c.number), c.word) << c.number << " " << name_of(c.dtype);
  }
  ir::ExprPool pool;
  ir::Expr largest = pool.number_int(-1, DType::UInt64);
  EXPECT_EQ(pool.cast(DType::Float64, largest)->number, 0x1p64);
  EXPECT_EQ(pool.cast(DType::Int64, largest)->integer, -1);
  EXPECT_EQ(pool.cast(DType::UInt8, largest)->integer, 255);
  EXPECT_TRUE(largest->is_constant(0x1p64));
  EXPECT_EQ(pool.number(0x1p63, DType::UInt64)->integer, INT64_MIN);
  EXPECT_EQ(pool.number(1000, DType::Int8)->integer, 127);
}

// An order that holds for sizes does not hold for elements, whose sums wrap around.
TEST(IntegerElements, HaveNoOrderBeyondTheirWords) {
  ir::ExprPool pool;
  ir::Expr axis = pool.axis("i", pool.integer(8)), one = pool.integer(1), three = pool.integer(3);
  ir::Expr x = pool.read(0, DType::Int64, {axis}), next = pool.add(x, one);
  EXPECT_FALSE(proved_less(pool, x, next));
  EXPECT_TRUE(proved_less(pool, axis, pool.add(axis, one)));
  EXPECT_TRUE(proved_less_equal(pool, x, x));
  EXPECT_FALSE(proved_nonnegative(pool.make(ir::ExprOp::Abs, {x})));
  ir::Expr bounded = pool.make(ir::ExprOp::Max,
                               {pool.make(ir::ExprOp::Min, {x, pool.integer(7)}), pool.integer(0)});
  EXPECT_TRUE(proved_less(pool, pool.mul(bounded, three), pool.integer(22)));
  // Numbers that no coefficient holds.
  ir::Expr far = pool.integer(INT64_MAX);
  EXPECT_NO_THROW(pool.add(pool.add(x, far), far));
  EXPECT_NO_THROW(pool.sub(x, pool.integer(INT64_MIN)));
  EXPECT_NO_THROW(pool.make(ir::ExprOp::LessEqual, {pool.integer(INT64_MIN), next}));
  EXPECT_THROW(pool.add(pool.add(axis, far), far), UserError);
}

}  // namespace
}  // namespace redfuser
