// CUDA text of operations on integers: the functions of src/device/math.cuh, compiled for the host,
// against the words of ir/scalars/integers.h; which text an expression becomes; and that NVRTC
// takes it for every type.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "codegen/text/operation_text.h"
#include "ir/scalars/integers.h"
#include "support/codegen_harness.h"
#include "support/text_model.h"

// Functions of device headers, for the host.
#define __device__
#define __forceinline__ inline
#define asm(...) static_cast<void>(a + b)
namespace device {
inline float ptx_exp2(float x) { return std::exp2(x); }
inline float ptx_reciprocal(float x) { return 1 / x; }
#include "device/math.cuh"
}  // namespace device
#undef asm
#undef __device__
#undef __forceinline__

namespace redfuser::codegen_tests {
namespace {

std::vector<int64_t> words() {
  std::set<int64_t> result;
  for (const int64_t base : {int64_t{0}, INT64_MIN, INT64_MAX - 3, int64_t{1} << 31}) {
    for (int64_t offset = 0; offset < 4; ++offset) result.insert(base + offset);
  }
  for (const int64_t small : {-1, -2, -7, 7, 62, 63, 64, 65, 100}) result.insert(small);
  return {result.begin(), result.end()};
}

template <typename T>
struct Function {
  ir::ExprOp op;
  T (*call)(T, T);
};

template <typename T>
void expect_words(DType dtype, const std::vector<Function<T>>& functions) {
  for (const auto& [op, call] : functions) {
    for (const int64_t a : words()) {
      for (const int64_t b : words()) {
        ASSERT_EQ(static_cast<int64_t>(call(static_cast<T>(a), static_cast<T>(b))),
                  *word_operation(op, dtype, a, b))
            << "operation " << static_cast<int>(op) << " of " << a << " and " << b;
      }
    }
  }
}

template <typename T>
std::vector<Function<T>> common_functions() {
  return {{ir::ExprOp::Div, device::trunc_div},
          {ir::ExprOp::FloorDiv, device::floor_div},
          {ir::ExprOp::TruncMod, device::trunc_mod},
          {ir::ExprOp::FloorMod, device::floor_mod},
          {ir::ExprOp::Min, device::min_of},
          {ir::ExprOp::Max, device::max_of},
          {ir::ExprOp::Pow, device::power},
          {ir::ExprOp::ShiftLeft, device::shift_left<T>},
          {ir::ExprOp::ShiftRight, device::shift_right<T>}};
}

TEST(DeviceIntegers, AreTheWordsOfEveryOperation) {
  expect_words(DType::UInt64, common_functions<unsigned long long>());
  auto functions = common_functions<long long>();
  functions.push_back({ir::ExprOp::Add, device::wrapping_add});
  functions.push_back({ir::ExprOp::Sub, device::wrapping_sub});
  functions.push_back({ir::ExprOp::Mul, device::wrapping_mul});
  expect_words(DType::Int64, functions);
  for (const int64_t word : words()) {
    EXPECT_EQ(device::abs_of(word), *word_operation(ir::ExprOp::Abs, DType::Int64, word));
    const auto x = static_cast<unsigned long long>(word);
    EXPECT_EQ(static_cast<int64_t>(device::sign_of(x)),
              *word_operation(ir::ExprOp::Sign, DType::UInt64, word));
  }
}

// The bits of a division, but for quotients below 2^-100, which may be two units off.
TEST(DeviceQuotients, AreThoseOfADivision) {
  constexpr float kInfinite = INFINITY;
  std::vector<float> numbers = {0.0f,      -0.0f,    1.0f,     -3.0f,      127.0f,
                                0x1p-24f,  0x1p99f,  0x1p126f, 0x1.8p127f, -0x1p-126f,
                                0x1p-149f, 65504.0f, NAN,      kInfinite,  -kInfinite};
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    numbers.push_back(std::bit_cast<float>(static_cast<unsigned>(random())));
  }
  for (const float divisor : numbers) {
    const auto by = device::exact_divisor_of(divisor);
    for (const float x : numbers) {
      const float expected = x / divisor, quotient = device::divide(x, by);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(quotient)) << x << " / " << divisor;
        continue;
      }
      EXPECT_EQ(std::signbit(quotient), std::signbit(expected)) << x << " / " << divisor;
      const float size = std::abs(expected), next = std::nextafter(size, kInfinite);
      const bool small = size < 0x1p-100f && size > 0;
      EXPECT_TRUE(quotient == expected ||
                  (small && std::abs(quotient - expected) <= 2 * (next - size)))
          << x << " / " << divisor;
    }
  }
}

TEST(DeviceIntegers, AreThoseOfNumbers) {
  for (const double x :
       {0.0, -0.9, 1.5, -1.5, 127.9, 3e9, -3e9, 2147483647.5, -2147483648.5, 9e18, 0x1p63, 0x1.8p63,
        0x1p64, 1e30, -1e30, INFINITY * 1.0, -INFINITY * 1.0, NAN * 1.0}) {
    EXPECT_EQ(device::to_int32(x), ir::word_of_number(DType::Int32, x)) << x;
    EXPECT_EQ(device::to_integer(x), ir::word_of_number(DType::Int64, x)) << x;
    EXPECT_EQ(static_cast<int64_t>(device::to_unsigned(x)), ir::word_of_number(DType::UInt64, x))
        << x;
    const auto single = static_cast<float>(x);
    EXPECT_EQ(device::to_int32(single), ir::word_of_number(DType::Int32, single)) << x;
    EXPECT_EQ(device::to_integer(single), ir::word_of_number(DType::Int64, single)) << x;
    EXPECT_EQ(static_cast<int64_t>(device::to_unsigned(single)),
              ir::word_of_number(DType::UInt64, single))
        << x;
  }
}

TEST(DeviceIntegers, NarrowWordsWrap) {
  for (const int64_t word : words()) {
    EXPECT_EQ(device::narrow_signed<4>(word), ir::wrapped_word(DType::Int4, word));
    EXPECT_EQ(device::narrow_unsigned<4>(word), ir::wrapped_word(DType::UInt4, word));
    EXPECT_EQ(device::narrow_signed<2>(word), ir::wrapped_word(DType::Int2, word));
    EXPECT_EQ(device::narrow_unsigned<2>(word), ir::wrapped_word(DType::UInt2, word));
  }
}

struct TextCase {
  const char* name;
  DType dtype;
  ir::Expr (*build)(ir::ExprPool&, ir::Expr a, ir::Expr b);
  const char* text;
};

template <ir::ExprOp op>
ir::Expr of_both(ir::ExprPool& pool, ir::Expr a, ir::Expr b) {
  return pool.make(op, {a, b});
}
template <ir::ExprOp op>
ir::Expr of_one(ir::ExprPool& pool, ir::Expr a, ir::Expr) {
  return pool.make(op, {a});
}
template <DType dtype>
ir::Expr cast(ir::ExprPool& pool, ir::Expr a, ir::Expr) {
  return pool.cast(dtype, a);
}

const TextCase kTexts[] = {
    {"add8", DType::Int8, of_both<ir::ExprOp::Add>,
     "static_cast<long long>(static_cast<signed char>(wrapping_add(a, b)))"},
    {"neg8", DType::Int8, of_one<ir::ExprOp::Neg>,
     "static_cast<long long>(static_cast<signed char>(wrapping_sub(0ll, a)))"},
    {"abs32", DType::Int32, of_one<ir::ExprOp::Abs>,
     "static_cast<long long>(static_cast<int>(abs_of(a)))"},
    {"not16", DType::UInt16, of_one<ir::ExprOp::BitNot>,
     "static_cast<long long>(static_cast<unsigned short>(~a))"},
    {"mul32", DType::UInt32, of_both<ir::ExprOp::Mul>,
     "static_cast<long long>(static_cast<unsigned>(wrapping_mul(a, b)))"},
    {"max8", DType::Int8, of_both<ir::ExprOp::Max>, "max_of(a, b)"},
    {"add64", DType::Int64, of_both<ir::ExprOp::Add>, "wrapping_add(a, b)"},
    {"less64", DType::UInt64, of_both<ir::ExprOp::Less>, "a < b"},
    {"addu64", DType::UInt64, of_both<ir::ExprOp::Add>, "a + b"},
    {"absu64", DType::UInt64, of_one<ir::ExprOp::Abs>, "a"},
    {"shift", DType::UInt64, of_both<ir::ExprOp::ShiftRight>, "shift_right(a, b)"},
    {"to_float", DType::UInt64, cast<DType::Float32>, "static_cast<float>(a)"},
    {"to_int64", DType::UInt64, cast<DType::Int64>, "static_cast<long long>(a)"},
    {"to_uint64", DType::Int8, cast<DType::UInt64>, "static_cast<unsigned long long>(a)"},
    {"from_float", DType::Float32, cast<DType::UInt64>, "to_unsigned(a)"},
    {"to_uint8", DType::Float32, cast<DType::UInt8>,
     "static_cast<long long>(static_cast<unsigned char>(to_int32(a)))"},
    {"add4", DType::Int4, of_both<ir::ExprOp::Add>, "narrow_signed<4>(wrapping_add(a, b))"},
    {"to_uint4", DType::Float32, cast<DType::UInt4>, "narrow_unsigned<4>(to_int32(a))"},
    {"to_int2", DType::UInt8, cast<DType::Int2>, "narrow_signed<2>(a)"},
    {"from_int2", DType::Int2, cast<DType::Float32>, "static_cast<float>(a)"},
    {"to_uint32", DType::Float32, cast<DType::UInt32>,
     "static_cast<long long>(static_cast<unsigned>(to_integer(a)))"},
};

TEST(IntegerText, FollowsTheType) {
  for (const TextCase& c : kTexts) {
    ir::ExprPool pool;
    ir::Expr a = pool.read(0, c.dtype, {pool.integer(0)}),
             b = pool.read(1, c.dtype, {pool.integer(0)});
    ir::Expr built = c.build(pool, a, b);
    std::vector<std::string> names{"a", "b"};
    names.resize(built->args.size());
    EXPECT_EQ(codegen::operation_text(built, names, false), c.text) << c.name;
  }
  EXPECT_EQ(codegen::identity_of(ir::Reduction::Max, DType::UInt64), "0ull");
  EXPECT_EQ(codegen::identity_of(ir::Reduction::Min, DType::UInt64), "18446744073709551615ull");
  EXPECT_EQ(codegen::identity_of(ir::Reduction::Max, DType::Int8), "(-128ll)");
  EXPECT_EQ(codegen::identity_of(ir::Reduction::Min, DType::Int64), "9223372036854775807ll");
}

// Sizes and indices, which do not overflow, keep the operators that the compiler reorders.
TEST(IntegerText, LeavesIndicesAsTheyAre) {
  ir::ExprPool pool;
  ir::Expr i = pool.axis("i", pool.integer(8)), j = pool.axis("j", pool.integer(8));
  EXPECT_EQ(codegen::operation_text(pool.add(i, j), {"a", "b"}, false), "a + b");
}

TEST(IntegerText, CompilesForEveryType) {
  Compiler* compiler = Compiler::find();
  if (!compiler) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const char* type : {"int8", "uint8", "int32", "uint32", "int64", "uint64"}) {
    const std::string of = std::string(type) + "[64, 96] ";
    std::string nodes =
        "axis = Constant<value = int64[1] {1}>() a = Add(x, y) b = Mul(a, x) c = Div(b, y) "
        "d = Mod(c, y) e = Max(d, x) f = Min(e, a) g = Sub(f, x) s = Sign(g) h = Abs(s) l = "
        "Less(h, "
        "x) z = Where(l, h, f) u = Cast<to = 13>(z) v = Cast<to = 1>(u) w = Cast<to = 13>(v) r = "
        "ReduceMax<keepdims = 0>(z, axis) t = ArgMax<axis = 1>(z)";
    if (type[0] == 'u') nodes += " p = BitShift<direction = \"RIGHT\">(z, x)";
    const std::string results =
        ", uint64[64, 96] w, " + std::string(type) + "[64] r, int64[64, 1] t";
    const std::string shifted = type[0] == 'u' ? ", " + of + "p" : "";
    const std::string graph =
        "g (" + of + "x, " + of + "y) => (" + of + "z" + results + shifted + ") {" + nodes + " }";
    const TextModel model(graph);
    for (const codegen::KernelLaunch& kernel : generate_model(model.path()).kernels) {
      const auto result = compiler->compile(kernel.source, 90);
      EXPECT_TRUE(result.compiled) << type << "\n" << result.log << kernel.source;
    }
  }
}

TEST(IntegerText, CompilesForNarrowTypes) {
  Compiler* compiler = Compiler::find();
  if (!compiler) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  for (const auto& [name, number] :
       {std::pair{"uint4", 21}, {"int4", 22}, {"uint2", 25}, {"int2", 26}}) {
    const std::string graph = fmt::format(
        "<ir_version: 13, opset_import: [\"\" : 25]> g (float[64, 96] x, {0}[64, 96] c) => "
        "({0}[64, 96] q, float16[96, 64] z, int8[64, 96] w) {{ q = Cast<to = {1}>(x) "
        "t = Transpose(c) z = Cast<to = 10>(t) w = Cast<to = 3>(c) }}",
        name, number);
    const GeneratedModel generated = generate_model(Model::parse(graph));
    EXPECT_FALSE(generated.kernels.empty());
    for (const codegen::KernelLaunch& kernel : generated.kernels) {
      const auto result = compiler->compile(kernel.source, 90);
      EXPECT_TRUE(result.compiled) << name << "\n" << result.log << kernel.source;
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
