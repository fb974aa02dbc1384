// Convolutions of 8-bit integers with what follows them, drawn at random, bit for bit against the
// reference, which has sums of doubles.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

// Nodes that make `y` of the sums `c`, with inputs `r` and `all` of their sizes, and `s` and `each`
// of [filters, 1, ...]; `all` and `each` are of floats. Nothing rounds, so that results are equal.
constexpr const char* kFollowing[] = {
    "y = Identity(c)",
    "a = Add(c, s) y = Cast<to = 1>(a)",
    "f = Cast<to = 1>(c) h = Constant<value_float = 0.5>() m = Mul(f, h) n = Floor(m) "
    "y = Cast<to = 6>(n)",
    "a = Add(c, r) b = Sub(a, s) y = Cast<to = 3>(b)",
    "a = Max(c, s) y = Cast<to = 2>(a)",
    "z = Sub(r, c) g = Greater(z, s) y = Where(g, c, r)",
    "f = Cast<to = 1>(c) h = Constant<value_float = 0.0078125>() m = Mul(f, h) "
    "k = Constant<value_float = 3.5>() a = Add(m, k) u = Constant<value_float = 4.0>() "
    "o = Constant<value = uint8 {3}>() y = QuantizeLinear(a, u, o)",
    "f = Cast<to = 1>(c) u = Constant<value_float = 32.0>() o = Constant<value = int8 {-7}>() "
    "y = QuantizeLinear(f, u, o)",
    "f = Cast<to = 1>(c) u = Constant<value_float = 32.0>() o = Constant<value = uint8 {3}>() "
    "b = QuantizeLinear(f, u, o) d = DequantizeLinear(b, u, o) e = Cast<to = 1>(r) "
    "y = Add(d, e)",
    "f = Cast<to = 1>(c) u = Constant<value_float = 16.0>() o = Constant<value = int8 {-7}>() "
    "b = QuantizeLinear(f, u, o) d = DequantizeLinear(b, u, o) a = Abs(d) y = Mul(a, d)",
    // Functions of codes alone: tables.
    "f = Cast<to = 1>(c) u = Constant<value_float = 32.0>() o = Constant<value = uint8 {113}>() "
    "b = QuantizeLinear(f, u, o) d = DequantizeLinear(b, u, o) a = Abs(d) m = Add(a, d) "
    "n = Constant<value_float = 64.0>() j = Constant<value = int8 {-9}>() "
    "y = QuantizeLinear(m, n, j)",
    "f = Cast<to = 1>(c) u = Constant<value_float = 32.0>() o = Constant<value = int8 {-13}>() "
    "b = QuantizeLinear(f, u, o) d = DequantizeLinear(b, u, o) n = Neg(d) "
    "v = Constant<value_float = 16.0>() j = Constant<value = uint8 {9}>() "
    "y = QuantizeLinear(n, v, j)",
    // Floats of the sums: scales and offsets, numbers or of each filter, and a function of them.
    "f = Cast<to = 1>(c) h = Constant<value_float = 0.25>() m = Mul(f, h) "
    "k = Constant<value_float = -3.5>() a = Add(m, k) y = Relu(a)",
    "f = Cast<to = 1>(c) m = Mul(each, f) n = Constant<value_float = 0.0>() g = Max(m, n) "
    "y = Mul(m, g)",
    "f = Cast<to = 1>(c) h = Constant<value_float = 0.5>() m = Mul(f, h) a = Add(each, m) "
    "b = Add(all, a) l = Constant<value_float = -900.0>() n = Constant<value_float = 7000.0>() "
    "y = Clip(b, l, n)",
};

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  Tensor bytes(DType dtype, const Dims& dims) {
    Tensor result(dtype, dims);
    auto* data = static_cast<uint8_t*>(result.mutable_data());
    for (int64_t i = 0; i < result.size(); ++i) {
      data[i] = static_cast<uint8_t>(number(0, 3) == 0 ? 255 : number(0, 255));
    }
    return result;
  }
  // Powers of two, or such whole numbers that sums of floats are exact.
  Tensor floats(const Dims& dims, bool powers) {
    Tensor result(DType::Float32, dims);
    for (int64_t i = 0; i < result.size(); ++i) {
      const auto n = static_cast<int>(powers ? number(-3, 2) : number(-1000, 1000));
      result.as<float>()[i] = powers ? std::ldexp(1.0f, n) : static_cast<float>(n);
    }
    return result;
  }
  Tensor words(const Dims& dims) {
    Tensor result(DType::Int32, dims);
    for (int64_t i = 0; i < result.size(); ++i) {
      result.as<int32_t>()[i] = static_cast<int32_t>(number(-70000, 70000));
    }
    return result;
  }

 private:
  std::mt19937 random_;
};

struct Drawn {
  std::string text;
  NamedTensors inputs;
  bool follows;
};

// `by_channels`: every group has one channel.
Drawn draw(uint32_t seed, bool by_channels) {
  Draw d(seed);
  const int64_t rank = d.number(1, 3), batch = d.number(1, 2);
  const int64_t groups = by_channels ? d.number(1, 9) : d.number(0, 2) ? 1 : 2;
  const int64_t channels = by_channels ? 1 : d.number(1, 9);
  const int64_t filters = by_channels ? d.number(1, 2) : d.number(1, d.number(0, 3) ? 13 : 120);
  Dims x{batch, groups * channels}, w{groups * filters, channels}, y{batch, groups * filters},
      s{groups * filters};
  std::vector<int64_t> strides, dilations, begins, ends;
  const bool pointwise = d.number(0, 3) == 0;
  constexpr int64_t kMost[] = {300, 24, 6};
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t kernel = pointwise ? 1 : d.number(1, by_channels ? 6 : 4),
                  stride = d.number(1, pointwise     ? 1
                                       : by_channels ? 5
                                                     : 3),
                  dilation = d.number(1, by_channels ? 5 : 2), begin = d.number(0, kernel - 1),
                  end = d.number(0, kernel - 1), reach = (kernel - 1) * dilation + 1;
    const int64_t input = std::max(d.number(3, kMost[rank - 1]), reach);
    x.push_back(input), w.push_back(kernel), s.push_back(1);
    y.push_back((input + begin + end - reach) / stride + 1);
    strides.push_back(stride), dilations.push_back(dilation);
    begins.push_back(begin), ends.push_back(end);
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  const DType left = d.number(0, 1) ? DType::Int8 : DType::UInt8,
              right = d.number(0, 1) ? DType::Int8 : DType::UInt8;
  const auto declared = [&](const char* name, DType dtype, const Dims& dims) {
    const char* type = dtype == DType::Int8      ? "int8"
                       : dtype == DType::UInt8   ? "uint8"
                       : dtype == DType::Float32 ? "float"
                                                 : "int32";
    if (dims.empty()) return fmt::format("{} {}", type, name);
    return fmt::format("{}[{}] {}", type, fmt::join(dims, ","), name);
  };
  const auto following =
      static_cast<size_t>(d.number(0, static_cast<int64_t>(std::size(kFollowing)) - 1));
  constexpr const char* kResults[] = {"int32", "float", "int32", "int8",  "uint8",
                                      "int32", "uint8", "int8",  "float", "float",
                                      "int8",  "uint8", "float", "float", "float"};
  const Dims one, each{groups * filters};
  const int64_t zeros = d.number(0, 3);  // none, x's, both, and one for each filter
  Drawn drawn;
  drawn.follows = following != 0;
  drawn.text = fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g ({}, {}, {}, {}, {}, {}, {}, {}) => ({} y) "
      "{{ "
      "c = ConvInteger<group = {}, strides = [{}], dilations = [{}], pads = [{}]>(x, w{}) {} }}",
      declared("x", left, x), declared("w", right, w), declared("p", left, one),
      declared("q", right, zeros == 3 ? each : one), declared("r", DType::Int32, y),
      declared("s", DType::Int32, s), declared("each", DType::Float32, s),
      declared("all", DType::Float32, y), kResults[following], groups, fmt::join(strides, ","),
      fmt::join(dilations, ","), fmt::join(begins, ","),
      zeros == 0   ? ""
      : zeros == 1 ? ", p"
                   : ", p, q",
      kFollowing[following]);
  drawn.inputs.emplace("x", d.bytes(left, x));
  drawn.inputs.emplace("w", d.bytes(right, w));
  drawn.inputs.emplace("p", d.bytes(left, one));
  drawn.inputs.emplace("q", d.bytes(right, zeros == 3 ? each : one));
  drawn.inputs.emplace("r", d.words(y));
  drawn.inputs.emplace("s", d.words(s));
  drawn.inputs.emplace("each", d.floats(s, true));
  drawn.inputs.emplace("all", d.floats(y, false));
  return drawn;
}

// Filters as constants of the model, mostly of few bits: some pairs of bytes are split.
void make_filters_constant(Drawn& drawn, uint32_t seed) {
  Draw d(seed);
  Tensor& w = drawn.inputs.at("w");
  std::vector<int> numbers;
  auto* bytes = static_cast<uint8_t*>(w.mutable_data());
  for (int64_t i = 0; i < w.size(); ++i) {
    if (d.number(0, 15) != 0) bytes[i] = static_cast<uint8_t>(d.number(-50, 50));
    if (w.dtype() == DType::UInt8) bytes[i] ^= 0x80;
    numbers.push_back(w.dtype() == DType::UInt8 ? bytes[i] : static_cast<int8_t>(bytes[i]));
  }
  const size_t name = drawn.text.find("] w,"), begin = drawn.text.rfind(", ", name) + 2;
  const size_t type = drawn.text.rfind("int8", name) - (w.dtype() == DType::UInt8 ? 1 : 0);
  ASSERT_LE(begin, type);
  const std::string declared = drawn.text.substr(type, name + 3 - type);
  drawn.text.erase(type, name + 5 - type);
  drawn.text.insert(drawn.text.find("y) {") + 3,
                    fmt::format("<{} = {{{}}}> ", declared, fmt::join(numbers, ",")));
  drawn.inputs.erase("w");
}

class IntegerConvolution : public testing::TestWithParam<bool> {};

TEST_P(IntegerConvolution, OfRandomSizesIsExact) {
  constexpr uint32_t kCases = 200;
  for (uint32_t seed = 1; seed <= kCases; ++seed) {
    Drawn drawn = draw(seed, GetParam());
    if (seed % 2 == 0) make_filters_constant(drawn, seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, drawn.text));
    const Model model = Model::parse(drawn.text);
    const Program program = compile(model);
    if (drawn.follows) {
      ASSERT_EQ(program.handle()->plan.steps.size(), 1u);
    }
    Session session(program, {.device = "cpu", .threads = 1 + static_cast<int>(seed % 2)});
    CompileOptions unfused;
    unfused.fuse = false;
    Session exact(compile(model, unfused), {.device = "reference"});
    const Tensor y = session.run(drawn.inputs).at("y");
    const Tensor wanted = exact.run(drawn.inputs).at("y");
    ASSERT_EQ(y.dims(), wanted.dims());
    ASSERT_EQ(
        std::memcmp(y.data(), wanted.data(), static_cast<size_t>(y.size()) * size_of(y.dtype())),
        0);
  }
}

INSTANTIATE_TEST_SUITE_P(GroupsOf, IntegerConvolution, testing::Values(false, true),
                         [](const auto& info) {
                           return std::string(info.param ? "OneChannel" : "SeveralChannels");
                         });

// Scales, a bias and the next quantisation of each filter.
TEST(QuantisedConvolution, IsQuantisedFilterByFilter) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (uint8[2, 4, 9, 37] x, int8[3, 4, 3, 3] w, "
      "uint8 z) => (uint8[2, 3, 9, 37] y) { c = ConvInteger<pads = [1, 1, 1, 1]>(x, w, z) "
      "f = Cast<to = 1>(c) s = Constant<value = float[3, 1, 1] {0.5, 0.25, 0.0625}>() "
      "m = Mul(f, s) b = Constant<value = float[3, 1, 1] {100.25, -3.5, 0}>() a = Add(m, b) "
      "q = Constant<value_float = 16.0>() o = Constant<value = uint8 {128}>() "
      "y = QuantizeLinear(a, q, o) }");
  Draw d(5);
  const NamedTensors inputs{{"x", d.bytes(DType::UInt8, {2, 4, 9, 37})},
                            {"w", d.bytes(DType::Int8, {3, 4, 3, 3})},
                            {"z", d.bytes(DType::UInt8, {})}};
  CompileOptions unfused;
  unfused.fuse = false;
  Session session(compile(model), {.device = "cpu", .threads = 2});
  Session exact(compile(model, unfused), {.device = "reference"});
  const Tensor y = session.run(inputs).at("y"), wanted = exact.run(inputs).at("y");
  ASSERT_EQ(y.dims(), wanted.dims());
  EXPECT_EQ(std::memcmp(y.data(), wanted.data(), static_cast<size_t>(y.size())), 0);
}

// A sum with another value of bytes, each dequantised, behind the quantised sums.
TEST(QuantisedConvolution, IsQuantisedAgainWithAResidual) {
  for (const DType other : {DType::UInt8, DType::Int8}) {
    for (const char* follows : {"Relu", "Identity"}) {
      const Model model = Model::parse(fmt::format(
          "<ir_version: 9, opset_import: [\"\" : 20]> g (uint8[2, 4, 9, 37] x, int8[3, 4, 3, 3] w, "
          "uint8 z, {}[2, 3, 9, 37] r) => (int8[2, 3, 9, 37] y) {{ "
          "c = ConvInteger<pads = [1, 1, 1, 1]>(x, w, z) f = Cast<to = 1>(c) "
          "s = Constant<value = float[3, 1, 1] {{0.5, 0.25, 0.0625}}>() m = Mul(f, s) "
          "k = Constant<value_float = 16.0>() o = Constant<value = uint8 {{128}}>() "
          "q = QuantizeLinear(m, k, o) d = DequantizeLinear(q, k, o) "
          "u = Constant<value_float = 8.0>() e = DequantizeLinear(r, u) a = Add(d, e) "
          "t = {}(a) h = Constant<value_float = 64.0>() p = Constant<value = int8 {{-9}}>() "
          "y = QuantizeLinear(t, h, p) }}",
          other == DType::Int8 ? "int8" : "uint8", follows));
      Draw d(9);
      const NamedTensors inputs{{"x", d.bytes(DType::UInt8, {2, 4, 9, 37})},
                                {"w", d.bytes(DType::Int8, {3, 4, 3, 3})},
                                {"z", d.bytes(DType::UInt8, {})},
                                {"r", d.bytes(other, {2, 3, 9, 37})}};
      CompileOptions unfused;
      unfused.fuse = false;
      Session session(compile(model), {.device = "cpu", .threads = 2});
      Session exact(compile(model, unfused), {.device = "reference"});
      const Tensor y = session.run(inputs).at("y"), wanted = exact.run(inputs).at("y");
      ASSERT_EQ(y.dims(), wanted.dims());
      EXPECT_EQ(std::memcmp(y.data(), wanted.data(), static_cast<size_t>(y.size())), 0) << follows;
    }
  }
}

// Many channels and filters on small images, whose positions are the rows of the product.
TEST(QuantisedConvolution, OfDeepFiltersIsExact) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Draw d(seed);
    const int64_t groups = d.number(1, 2), channels = d.number(16, 40), filters = d.number(14, 40);
    const int64_t kernel = 2 * d.number(0, 1) + 1, stride = d.number(1, 2), batch = d.number(1, 2);
    const int64_t height = d.number(3, 15), width = d.number(3, seed % 9 == 0 ? 300 : 15);
    const int64_t pad = kernel / 2;
    const Tensor w = d.bytes(DType::Int8, {groups * filters, channels, kernel, kernel});
    std::vector<int> numbers;
    for (int64_t i = 0; i < w.size(); ++i) numbers.push_back(w.as<int8_t>()[i]);
    const bool is_signed = d.number(0, 1) == 1;
    const char* type = is_signed ? "int8" : "uint8";
    const std::string text = fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[{1},{2},{3},{4}] x, {0} z) => (int32 y) "
        "<int8[{5},{6},{7},{7}] w = {{{8}}}> {{ y = ConvInteger<group = {9}, strides = [{10}, "
        "{10}], "
        "pads = [{11}, {11}, {11}, {11}]>(x, w, z) }}",
        type, batch, groups * channels, height, width, groups * filters, channels, kernel,
        fmt::join(numbers, ","), groups, stride, pad);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Model model = Model::parse(text);
    const DType dtype = is_signed ? DType::Int8 : DType::UInt8;
    const NamedTensors inputs{{"x", d.bytes(dtype, {batch, groups * channels, height, width})},
                              {"z", d.bytes(dtype, {})}};
    Session session(compile(model), {.device = "cpu", .threads = 1 + static_cast<int>(seed % 3)});
    Session exact(compile(model), {.device = "reference"});
    const Tensor y = session.run(inputs).at("y"), wanted = exact.run(inputs).at("y");
    ASSERT_EQ(y.dims(), wanted.dims());
    ASSERT_EQ(std::memcmp(y.data(), wanted.data(), static_cast<size_t>(y.size()) * 4), 0);
  }
}

// Single channels whose planes have several blocks of vectors, with padding beyond the kernel.
TEST(QuantisedConvolution, OfLargeChannelsIsExact) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    Draw d(seed);
    const int64_t channels = d.number(1, 6), filters = d.number(1, 2), batch = d.number(1, 2);
    const int64_t height = d.number(9, 70), width = d.number(9, 90), kernel = d.number(1, 7);
    const int64_t stride = d.number(1, 3), dilation = d.number(1, 1 + (seed % 5 == 0)),
                  pad = d.number(0, 8);
    if ((kernel - 1) * dilation + 1 > std::min(height, width) + 2 * pad) continue;
    const Tensor w = d.bytes(DType::Int8, {channels * filters, 1, kernel, kernel});
    std::vector<int> numbers;
    for (int64_t i = 0; i < w.size(); ++i) numbers.push_back(w.as<int8_t>()[i]);
    const bool is_signed = d.number(0, 1) == 1;
    const std::string text = fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g ({0}[{1},{2},{3},{4}] x, {0} z) => (uint8 y) "
        "<int8[{5},1,{6},{6}] w = {{{7}}}> {{ c = ConvInteger<group = {2}, strides = [{8}, {8}], "
        "dilations = [{9}, {9}], pads = [{10}, {10}, {10}, {10}]>(x, w, z) f = Cast<to = 1>(c) "
        "k = Constant<value_float = 64.0>() o = Constant<value = uint8 {{99}}>() "
        "y = QuantizeLinear(f, k, o) }}",
        is_signed ? "int8" : "uint8", batch, channels, height, width, channels * filters, kernel,
        fmt::join(numbers, ","), stride, dilation, pad);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, text));
    const Model model = Model::parse(text);
    const DType dtype = is_signed ? DType::Int8 : DType::UInt8;
    const NamedTensors inputs{{"x", d.bytes(dtype, {batch, channels, height, width})},
                              {"z", d.bytes(dtype, {})}};
    Session session(compile(model), {.device = "cpu", .threads = 1 + static_cast<int>(seed % 3)});
    Session exact(compile(model), {.device = "reference"});
    const Tensor y = session.run(inputs).at("y"), wanted = exact.run(inputs).at("y");
    ASSERT_EQ(y.dims(), wanted.dims());
    ASSERT_EQ(std::memcmp(y.data(), wanted.data(), static_cast<size_t>(y.size())), 0);
  }
}

// x less 1 is 1 to 9. The first filter sums windows: (12 + 4) / 2, ...; the second has their first
// elements: (2 · 1 − 6) / 4, ..., ties to even.
TEST(QuantisedConvolution, ByOneOperatorHasABiasAndScalesOfFilters) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (uint8[1, 1, 3, 3] x) => (uint8[1, 2, 2, 2] y) "
      "<float sx = {1}, uint8 zx = {1}, int8[2, 1, 2, 2] w = {1, 1, 1, 1, 2, 0, 0, 0}, "
      "float[2] sw = {1, 0.5}, int8[2] zw = {0, 0}, float sy = {2}, uint8 zy = {1}, "
      "int32[2] b = {4, -6}> { y = QLinearConv(x, sx, zx, w, sw, zw, sy, zy, b) }");
  const Program program = compile(model);
  EXPECT_EQ(program.handle()->plan.steps.size(), 1u);
  Tensor x(DType::UInt8, {1, 1, 3, 3});
  for (int64_t i = 0; i < 9; ++i) x.as<uint8_t>()[i] = static_cast<uint8_t>(2 + i);
  Session session(program, {.device = "cpu"});
  const Tensor y = session.run({{"x", x}}).at("y");
  const std::vector<int> wanted = {9, 11, 15, 17, 0, 1, 1, 2};
  ASSERT_EQ(y.size(), 8);
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(y.as<uint8_t>()[i], wanted[static_cast<size_t>(i)]) << i;
}

}  // namespace
}  // namespace redfuser
