// Convolutions with what follows them, drawn at random, against the reference in double precision.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

// Nodes that make `y` of the convolution's result `c`, with inputs `r` of its sizes, `o` of those
// of one image and `s` of [batch, filters, 1, ...].
constexpr const char* kFollowing[] = {
    "y = Relu(c)",
    "t = Sigmoid(c) y = Mul(c, t)",
    "y = HardSwish(c)",
    "y = Sigmoid(c)",
    "l = Constant<value_float = 1.75>() f = CastLike(l, c) m = Mul(c, f) t = Sigmoid(m) "
    "y = Mul(t, c)",
    "a = Add(c, r) t = Sigmoid(a) y = Mul(a, t)",
    "l = Constant<value_float = 0.25>() f = CastLike(l, c) m = Add(c, f) t = Sigmoid(m) "
    "y = Mul(c, t)",
    "m = Neg(c) n = Exp(m) l = Constant<value_float = 1.0>() f = CastLike(l, c) d = Add(n, f) "
    "y = Div(c, d)",
    "n = Exp(c) l = Constant<value_float = 1.0>() f = CastLike(l, c) d = Add(n, f) y = Div(f, d)",
    "a = Add(c, r) y = Relu(a)",
    "y = Add(r, c)",
    "a = Add(r, c) y = HardSwish(a)",
    "l = Constant<value_float = 0.5>() h = CastLike(l, c) a = Add(c, r) m = Mul(a, h) "
    "y = Add(m, h)",
    "a = Add(c, o) y = Relu(a)",
    "a = Add(c, s) y = Relu(a)",
    "a = Add(c, r) m = Mul(a, c) y = Relu(m)",
    "m = Mul(c, s) t = Tanh(m) y = Add(t, r)",
    "l = Constant<value_float = -0.5>() h = Constant<value_float = 0.75>() "
    "lo = CastLike(l, c) hi = CastLike(h, c) y = Clip(c, lo, hi)",
    "z = Sub(c, c) g = Greater(r, z) y = Where(g, c, s)",
};

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  int64_t number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  Tensor tensor(DType dtype, const Dims& dims) {
    Tensor result(DType::Float32, dims);
    for (int64_t i = 0; i < result.size(); ++i) {
      result.as<float>()[i] = static_cast<float>(number(-128, 128)) / 128;
    }
    return dtype == DType::Float32 ? result : cast(result, dtype);
  }

 private:
  static Tensor cast(const Tensor& from, DType dtype) {
    Tensor to(dtype, from.dims());
    for (int64_t i = 0; i < from.size(); ++i) {
      to.as<double>()[i] = static_cast<double>(from.as<float>()[i]);
    }
    return to;
  }

  std::mt19937 random_;
};

struct Drawn {
  std::string text;
  NamedTensors inputs;
};

// Sizes of one dimension.
struct Extent {
  int64_t input, kernel, stride, dilation, begin, end;
  int64_t output() const {
    return (input + begin + end - (kernel - 1) * dilation - 1) / stride + 1;
  }
};

Drawn draw(uint32_t seed) {
  Draw d(seed);
  const int64_t rank = d.number(1, 3), batch = d.number(1, 2);
  const int64_t kind = d.number(0, 2);  // one group, several, depthwise
  const int64_t groups = kind == 0 ? 1 : d.number(2, 5);
  constexpr int64_t kFilters[] = {90, 25, 2};  // of a group at most, by kind
  const int64_t channels = kind == 2 ? 1 : d.number(1, 6), filters = d.number(1, kFilters[kind]);
  const DType dtype = d.number(0, 4) == 0 ? DType::Float64 : DType::Float32;
  Dims x{batch, groups * channels}, w{groups * filters, channels}, y{batch, groups * filters},
      s = y, o;
  std::vector<int64_t> strides, dilations, begins, ends;
  const bool pointwise = d.number(0, 3) == 0;
  const bool single = kind < 2 && d.number(0, 7) == 0;  // the window is as large as the image
  // Of a dimension, by their number; large planes have more positions than a tile of the epilogue.
  constexpr int64_t kMost[] = {230, 17, 7}, kLarge[] = {9000, 90, 20};
  const bool large = kind == 2 && d.number(0, 2) == 0;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t most = large ? kLarge[rank - 1] : kMost[rank - 1];
    Extent e{d.number(large ? most * 9 / 10 : 3, most),
             pointwise ? 1 : d.number(1, 3),
             d.number(1, 3),
             d.number(1, 2),
             0,
             0};
    if (pointwise) e.stride = 1;
    e.begin = pointwise ? 0 : d.number(0, e.kernel - 1);
    e.end = pointwise ? 0 : d.number(0, e.kernel - 1);
    if (single) e = {e.kernel, e.kernel, 1, 1, 0, 0};
    e.input = std::max(e.input, (e.kernel - 1) * e.dilation + 1);
    x.push_back(e.input), w.push_back(e.kernel), y.push_back(e.output()), s.push_back(1);
    strides.push_back(e.stride), dilations.push_back(e.dilation);
    begins.push_back(e.begin), ends.push_back(e.end);
  }
  o = y, o[0] = 1;
  begins.insert(begins.end(), ends.begin(), ends.end());
  const char* type = dtype == DType::Float64 ? "double" : "float";
  const auto declared = [&](const char* name, const Dims& dims) {
    return fmt::format("{}[{}] {}", type, fmt::join(dims, ","), name);
  };
  const auto following =
      static_cast<size_t>(d.number(0, static_cast<int64_t>(std::size(kFollowing)) - 1));
  const Dims b{groups * filters};
  Drawn drawn;
  drawn.text = fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g ({}, {}, {}, {}, {}, {}) => (y) {{ "
      "c = Conv<group = {}, strides = [{}], dilations = [{}], pads = [{}]>(x, w, b) {} }}",
      declared("x", x), declared("w", w), declared("b", b), declared("r", y), declared("s", s),
      declared("o", o), groups, fmt::join(strides, ","), fmt::join(dilations, ","),
      fmt::join(begins, ","), kFollowing[following]);
  for (const auto& [name, dims] : std::initializer_list<std::pair<const char*, Dims>>{
           {"x", x}, {"w", w}, {"b", b}, {"r", y}, {"s", s}, {"o", o}}) {
    drawn.inputs.emplace(name, d.tensor(dtype, dims));
  }
  return drawn;
}

double element(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::Float64 ? tensor.as<double>()[i]
                                          : static_cast<double>(tensor.as<float>()[i]);
}

TEST(ConvolutionEpilogue, OfRandomConvolutionsMatchesTheReference) {
  constexpr uint32_t kCases = 360;
  for (uint32_t seed = 1; seed <= kCases; ++seed) {
    const Drawn drawn = draw(seed);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, drawn.text));
    const Model model = Model::parse(drawn.text);
    const Program program = compile(model);
    ASSERT_EQ(program.handle()->plan.steps.size(), 1u);
    Session session(program, {.device = "cpu", .threads = 1 + static_cast<int>(seed % 2)});
    CompileOptions unfused;
    unfused.fuse = false;
    Session exact(compile(model, unfused), {.device = "reference"});
    const Tensor y = session.run(drawn.inputs).at("y");
    const Tensor wanted = exact.run(drawn.inputs).at("y");
    ASSERT_EQ(y.dims(), wanted.dims());
    for (int64_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(element(y, i), element(wanted, i), 2e-4 + 2e-5 * std::fabs(element(wanted, i)))
          << "at " << i;
    }
  }
}

}  // namespace
}  // namespace redfuser
