// The families of CPU steps: every configuration computes the same, and the least estimate is
// taken.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/convolution/convolution_families.h"
#include "cpu/convolution/integer_plan.h"
#include "cpu/select/make_kernel.h"
#include "cpu/steps/cascade/cascade_families.h"
#include "cpu/steps/map/map_families.h"
#include "cpu/steps/product_families.h"
#include "cpu/steps/reduce_families.h"
#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

Program program_of(const std::string& graph) {
  return compile(Model::parse("<ir_version: 9, opset_import: [\"\" : 20]> " + graph));
}

struct FamiliesOf {
  const ir::Graph& graph;
  std::span<const cpu::Family> operator()(const fuse::MapStep&) { return cpu::map_families(); }
  std::span<const cpu::Family> operator()(const fuse::ReduceStep&) {
    return cpu::reduce_families();
  }
  std::span<const cpu::Family> operator()(const fuse::ProductStep&) {
    return cpu::product_families();
  }
  std::span<const cpu::Family> operator()(const fuse::CascadeStep&) {
    return cpu::cascade_families();
  }
  std::span<const cpu::Family> operator()(const fuse::OpaqueStep& step) {
    const auto floats = cpu::convolution_families(graph.nodes[static_cast<size_t>(step.node)]);
    return floats.empty() ? cpu::integer_convolution_families(graph, step) : floats;
  }
  template <typename Step>
  std::span<const cpu::Family> operator()(const Step&) {
    return {};
  }
};

// Ties, negative numbers and, where they are wanted, NaN.
Tensor numbers(const Dims& dims, bool nan, DType dtype = DType::Float32) {
  Tensor tensor(dtype, dims);
  for (int64_t i = 0; dtype == DType::Float64 && i < tensor.size(); ++i) {
    tensor.as<double>()[i] = static_cast<double>(i * 7919 % 613) / 256 - 1;
  }
  for (int64_t i = 0; size_of(dtype) == 1 && i < tensor.size(); ++i) {
    static_cast<uint8_t*>(tensor.mutable_data())[i] = static_cast<uint8_t>(i * 7919 % 613);
  }
  if (dtype != DType::Float32) return tensor;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.as<float>()[i] = static_cast<float>(i * 7919 % 613) / 100 - 3;
    if (nan && i % 97 == 5) tensor.as<float>()[i] = std::numeric_limits<float>::quiet_NaN();
  }
  return tensor;
}

void expect_equal(const Tensor& actual, const Tensor& expected, const std::string& choice) {
  ASSERT_EQ(actual.dims(), expected.dims());
  if (actual.dtype() != DType::Float32) {
    ASSERT_EQ(std::memcmp(actual.data(), expected.data(), actual.bytes()), 0) << choice;
    return;
  }
  for (int64_t i = 0; i < actual.size(); ++i) {
    const float a = actual.as<float>()[i], b = expected.as<float>()[i];
    if (std::isnan(b)) {
      ASSERT_TRUE(std::isnan(a)) << choice << " at " << i;
    } else {
      ASSERT_NEAR(a, b, 1e-4 * std::max(1.0f, std::fabs(b))) << choice << " at " << i;
    }
  }
}

// A run of a program, step by step.
class Steps {
 public:
  Steps(const Program& program, bool nan)
      : program_(*program.handle()), values_(program_.graph().values.size()) {
    const ir::Graph& graph = program_.graph();
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = graph.values[i].constant;
    for (const ir::ValueId id : graph.inputs) {
      values_[static_cast<size_t>(id)] = numbers(cpu::dims_of(graph, id, symbols_), nan,
                                                 graph.values[static_cast<size_t>(id)].dtype);
    }
  }

  // Runs every configuration of every family that takes a step, after what is taken by itself.
  int run_all() {
    int configurations = 0;
    for (const fuse::Step& step : program_.plan.steps) {
      cpu::RunContext context{program_.graph(), values_, symbols_, pool_};
      const auto kernel = cpu::make_kernel(program_.graph(), step);
      if (kernel == nullptr) continue;
      kernel->run(context);
      std::vector<Tensor> expected;
      for (const ir::ValueId id : step.writes) expected.push_back(values_[static_cast<size_t>(id)]);
      const cpu::Selection selection = kernel->selection(symbols_, false);
      EXPECT_FALSE(selection.offers.empty());
      for (const cpu::Family& family : std::visit(FamiliesOf{program_.graph()}, step.kind)) {
        cpu::StepForm form{program_.graph(), step.kind, symbols_, pool_.size(), true};
        for (const select::Candidate& candidate : family.offer(form).candidates) {
          EXPECT_GE(candidate.time,
                    selection.offers.front().divides ? 0 : selection.offers.front().time * 0.999);
          family.emit(form, candidate.choice)->run(context);
          ++configurations;
          for (size_t i = 0; i < step.writes.size(); ++i) {
            expect_equal(values_[static_cast<size_t>(step.writes[i])], expected[i],
                         to_string(candidate.choice));
          }
        }
      }
      expect_without_room(*kernel, step, context, expected);
    }
    return configurations;
  }

 private:
  // Values within a step stay below the room that there is.
  void expect_without_room(const cpu::Kernel& kernel, const fuse::Step& step,
                           cpu::RunContext& context, const std::vector<Tensor>& expected) {
    context.room = 0;
    context.inner_bytes = 0;
    kernel.run(context);
    EXPECT_EQ(context.inner_bytes, 0);
    for (size_t i = 0; i < step.writes.size(); ++i) {
      expect_equal(values_[static_cast<size_t>(step.writes[i])], expected[i], "without room");
    }
  }

  const runtime::CompiledProgram& program_;
  std::vector<Tensor> values_;
  std::vector<int64_t> symbols_;
  ThreadPool pool_{2};
};

TEST(CpuFamilies, EveryConfigurationComputesTheSame) {
  struct Case {
    const char* body;
    Dims dims;
    int least;  // configurations
    bool nan = false;
  };
  const Case cases[] = {
      {"y = Softmax<axis = -1>(x)", {37, 700}, 10},
      {"y = Softmax<axis = 0>(x)", {700, 37}, 10},
      {"t = Transpose<perm = [1, 0]>(x) s = MatMul(x, t) y = Relu(s)", {70, 300}, 4},
      // Few rows, whose sums are held together for long rows of the other operand; dot products.
      {"b = Constant<value_ints = [0]>() e = Constant<value_ints = [3]>() "
       "a = Constant<value_ints = [1]>() c = Slice(x, b, e, a) t = Transpose<perm = [1, 0]>(c) "
       "p = MatMul(t, x) y = Relu(p)",
       {300, 4500},
       6},
      {"z = Exp(x) m = Mul(x, z) a = Constant<value_ints = [1]>() y = ReduceSum(m, a)",
       {200, 49},
       2},
      {"q, s, z = DynamicQuantizeLinear(x) t = Transpose<perm = [1, 0]>(q) "
       "p = MatMulInteger(q, t, z, z) y = Cast<to = 1>(p)",
       {70, 300},
       10},
      // In parts: a row of channels with a bias each, with both results, and one without channels.
      {"d = Constant<value_ints = [1, 24, 16, 40]>() r = Reshape(x, d) "
       "i = Constant<value_ints = [0]>() j = Constant<value_ints = [1]>() b = Slice(x, i, j, j) "
       "e = Constant<value_ints = [1, 24, 1, 1]>() v = Reshape(b, e) a = Add(r, v) u = Relu(a) "
       "q, s, z = DynamicQuantizeLinear(u) f = Cast<to = 1>(q) t = Cast<to = 1>(z) "
       "n = Sub(f, t) m = Mul(n, s) y = Add(m, u)",
       {24, 640},
       6},
      // Groups of channels with a factor for each channel, and short axes of the output.
      {"d = Constant<value_ints = [1, 4, 3840]>() g = Reshape(x, d) "
       "a = Constant<value_ints = [2]>() m = ReduceMean(g, a) c = Sub(g, m) q = Mul(c, c) "
       "v = ReduceMean(q, a) s = Sqrt(v) n = Div(c, s) e = Constant<value_ints = [1, 24, 16, "
       "40]>() "
       "r = Reshape(n, e) i = Constant<value_ints = [0]>() j = Constant<value_ints = [1]>() "
       "b = Slice(x, i, j, j) f = Constant<value_ints = [1, 24, 1, 1]>() w = Reshape(b, f) "
       "y = Mul(r, w)",
       {24, 640},
       6},
      {"d = Constant<value_ints = [5, 70, 3, 7]>() r = Reshape(x, d) "
       "a = Constant<value_ints = [1]>() y = ReduceSum(r, a)",
       {35, 210},
       3},
      // Folds of a stored value of odd length, and of one that is read in order.
      {"d = Constant<value_ints = [1, 7, 11, 61]>() r = Reshape(x, d) a = Abs(r) e = Exp(a) "
       "q, s, z = DynamicQuantizeLinear(e) y = Cast<to = 1>(q)",
       {7, 671},
       6},
      {"d = Constant<value_ints = [1, 103, 397]>() r = Reshape(x, d) "
       "q, s, z = DynamicQuantizeLinear(r) y = Cast<to = 1>(q)",
       {103, 397},
       6},
      {"q = Mul(x, x) s = ReduceSum<keepdims = 0>(q) r = Sqrt(s) y = Div(x, r)",
       {70, 300},
       6,
       true},
      {"q, s, z = DynamicQuantizeLinear(x) y = Cast<to = 1>(q)", {1, 40009}, 6},
      {"t = Transpose<perm = [1, 0]>(x) z = Exp(t) y = Add(t, z)", {130, 70}, 2},
      {"t = Relu(x) n = Neg(x) e = Exp(x) y = Concat<axis = 0>(t, n, e)", {70, 90}, 3},
      {"t = Relu(x) n = Neg(x) y = Concat<axis = 1>(t, n)", {70, 90}, 3},
      {"p = Constant<value_ints = [3, 1, 2, 70]>() y = Pad<mode = \"edge\">(x, p)", {31, 40}, 3},
      // In sections: at the edges, mirrored, and by periods that begin several times.
      {"p = Constant<value_ints = [2, 9, 1, 30]>() y = Pad<mode = \"reflect\">(x, p)", {31, 40}, 4},
      {"p = Constant<value_ints = [0, 50, 0, 95]>() y = Pad<mode = \"wrap\">(x, p)", {31, 40}, 4},
      {"p = Constant<value_ints = [2, 3, 1, -2]>() y = Pad(x, p)", {31, 40}, 5, true},
      // In stages: along one axis, along both, with what precedes.
      {"s = Constant<value_floats = [2.0, 2.0]>() y = Resize<mode = \"linear\">(x, , s)",
       {31, 40},
       5},
      {"s = Constant<value_floats = [3.0, 1.5]>() e = Exp(x) t = Relu(x) a = Add(e, t) "
       "r = Resize<mode = \"cubic\", coordinate_transformation_mode = \"align_corners\">(a, , s) "
       "y = Mul(r, r)",
       {22, 36},
       6},
      {"s = Constant<value_floats = [2.5, 1.0]>() e = Exp(x) y = Resize(e, , s)", {20, 33}, 3},
      // Short rows, and rows of several axes, which repeat what other axes decide.
      {"d = Constant<value_ints = [35, 9, 1]>() r = Reshape(x, d) b = Constant<value_ints = [0]>() "
       "e = Constant<value_ints = [9]>() g = Slice(x, b, e, b) t = Sub(r, g) a = Abs(t) "
       "h = Exp(g) y = Mul(a, h)",
       {35, 9},
       4},
      {"d = Constant<value_ints = [2, 12, 10, 12]>() r = Reshape(x, d) n = Neg(x) "
       "p = Constant<value_ints = [2, 12, 60, 2]>() g = Reshape(n, p) y = GridSample(r, g)",
       {24, 120},
       9,
       true},
      // By the kernel of the one operator, pass after pass in any order.
      {"d = Constant<value_ints = [2, 12, 10, 12]>() r = Reshape(x, d) "
       "s = Constant<value_ints = [2, 12, 7, 19]>() y = Resize<mode = \"linear\">(r, , , s)",
       {24, 120},
       8,
       true},
      {"d = Constant<value_ints = [2, 20, 24, 3]>() r = Reshape(x, d) "
       "s = Constant<value_ints = [2, 33, 9, 3]>() y = Resize<mode = \"linear\", "
       "coordinate_transformation_mode = \"pytorch_half_pixel\">(r, , , s)",
       {24, 120},
       6,
       true},
      {"d = Constant<value_ints = [1, 12, 12, 20]>() r = Reshape(x, d) "
       "s = Constant<value_ints = [1, 31, 5, 20]>() y = Resize<mode = \"cubic\", "
       "coordinate_transformation_mode = \"align_corners\">(r, , , s)",
       {24, 120},
       8,
       true},
      {"s = Constant<value_floats = [1.0, 0.5]>() y = Resize<mode = \"linear\", "
       "coordinate_transformation_mode = \"asymmetric\">(x, , s)",
       {24, 120},
       4,
       true},
      {"y = ReduceMax<keepdims = 0>(x)", {9, 131}, 1},
      {"a = Constant<value = int64[1] {0}>() y = ReduceSum(x, a)", {300, 70}, 4},
      {"a = Constant<value_int = 1>() y = CumSum(x, a)", {30, 70}, 1},
      // Running along rows, beside columns in tiles and with whole runs in a tile.
      {"a = Constant<value_int = 0>() y = CumSum(x, a)", {30, 270}, 4, true},
      {"d = Constant<value_ints = [5, 6, 50]>() a = Constant<value_int = 1>() r = Reshape(x, d) "
       "e = Exp(r) c = CumSum<reverse = 1, exclusive = 1>(e, a) f = Constant<value_ints = [30, "
       "50]>() y = Reshape(c, f)",
       {30, 50},
       4},
      {"k = Constant<value = int64[1] {1500}>() y, i = TopK(x, k)", {3, 2100}, 4, true},
      {"k = Constant<value = int64[1] {40}>() y, i = TopK<largest = 0>(x, k)", {5, 2100}, 4, true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body);
    const std::string body = c.body;
    const bool ranks = body.find("TopK") != std::string::npos;
    const Program program = program_of(fmt::format("g (float[{}, {}] x) => (y{}) {{ {} }}",
                                                   c.dims[0], c.dims[1], ranks ? ", i" : "", body));
    EXPECT_GE(Steps(program, c.nan).run_all(), c.least);
  }
}

// Not with what precedes or follows, which the kernel does not compute.
TEST(CpuFamilies, AStepThatIsOneOperatorHasItsKernel) {
  const std::string scales = "s = Constant<value_floats = [1.5, 2.5]>() ";
  for (const auto& [body, offered] :
       {std::pair{"y = Resize<mode = \"linear\">(x, , s)", true},
        std::pair{"e = Exp(x) y = Resize<mode = \"linear\">(e, , s)", false},
        std::pair{"r = Resize<mode = \"linear\">(x, , s) y = Exp(r)", false},
        std::pair{"y = Resize(x, , s)", false}}) {
    const Program program =
        program_of(fmt::format("g (float[20, 30] x) => (y) {{ {}{} }}", scales, body));
    const runtime::CompiledProgram& compiled = *program.handle();
    bool found = false;
    for (const fuse::Step& step : compiled.plan.steps) {
      if (!std::holds_alternative<fuse::MapStep>(step.kind)) continue;
      cpu::StepForm form{compiled.graph(), step.kind, {}, 1, true};
      for (const auto& candidate : cpu::map_families()[0].offer(form).candidates) {
        found |= candidate.choice.parameters.front().first == "operator";
      }
    }
    EXPECT_EQ(found, offered) << body;
  }
}

TEST(CpuFamilies, EveryConfigurationOfAConvolutionComputesTheSame) {
  struct Case {
    const char *inputs, *attributes;
    int least;  // configurations
    const char* after = "";
    bool nan = false;
  };
  const Case cases[] = {
      {"float[2, 6, 23, 31] x, float[40, 6, 3, 3] w", "pads = [1, 1, 1, 1]", 7},
      {"float[1, 20, 19, 70] x, float[70, 20, 1, 1] w", "", 10},
      {"float[1, 12, 41, 40] x, float[20, 6, 3, 3] w", "group = 2, strides = [2, 2]", 10},
      {"float[1, 3, 600] x, float[33, 3, 9] w, float[33] b", "strides = [4], pads = [4, 4]", 5},
      {"float[1, 5, 20, 21] x, float[10, 1, 5, 5] w", "group = 5, dilations = [2, 1]", 3},
      {"double[1, 6, 9, 10, 11] x, double[20, 6, 3, 3, 3] w", "pads = [1, 1, 1, 1, 1, 1]", 4},
      {"float[2, 6, 23, 31] x, float[40, 6, 3, 3] w", "pads = [1, 1, 1, 1]", 7,
       "s = Sigmoid(c) y = Mul(c, s)"},
      {"float[1, 12, 41, 40] x, float[20, 6, 3, 3] w, float[20, 20, 1] r",
       "group = 2, strides = [2, 2], pads = [0, 1, 1, 1]", 6, "a = Add(c, r) y = Relu(a)"},
      {"float[2, 15, 70, 71] x, float[30, 1, 5, 5] w", "group = 15", 3, "y = HardSwish(c)"},
      {"float[3, 40, 7, 7] x, float[40, 1, 3, 3] w", "group = 40", 3, "y = Neg(c)"},
      // A vector of channels at a time: fewer and more, several filters, lines and images of one
      // line, which are divided into strips, and positions beyond the image.
      {"float[1, 24, 56, 60] x, float[24, 1, 5, 5] w, float[24] b",
       "group = 24, pads = [2, 2, 2, 2]", 9, "s = Sigmoid(c) y = Mul(c, s)"},
      {"float[2, 19, 13, 9] x, float[38, 1, 7, 7] w, float[38] b",
       "group = 19, pads = [3, 3, 3, 3], strides = [2, 1]", 6},
      {"float[1, 33, 700] x, float[33, 1, 3] w", "group = 33, pads = [4, 4], dilations = [4]", 11,
       "y = Relu(c)"},
      {"float[1, 17, 1, 90] x, float[17, 1, 3, 5] w", "group = 17, pads = [1, 9, 1, 9]", 9},
      {"float[1, 16, 3, 40] x, float[16, 1, 3, 3] w", "group = 16, pads = [5, 1, 5, 1]", 6},
      {"double[1, 12, 20, 11] x, double[12, 1, 3, 3] w",
       "group = 12, pads = [1, 1, 1, 1], strides = [3, 3]", 5},
      // Taps above each other, whose lines of input lie one after the other or a line apart: as
      // many as a run has, more, and every other one.
      {"float[1, 5, 21, 80] x, float[10, 1, 3, 2] w, float[10] b", "group = 5, pads = [1, 1, 1, 1]",
       3},
      {"float[1, 3, 43, 51] x, float[3, 1, 7, 1] w", "group = 3, strides = [2, 1]", 3},
      {"float[1, 3, 50, 40] x, float[3, 1, 8, 3] w", "group = 3, dilations = [2, 2]", 3},
      {"float[1, 3, 50, 40] x, float[3, 1, 5, 3] w",
       "group = 3, strides = [4, 2], dilations = [2, 1]", 3},
      {"double[1, 2, 9, 12, 40] x, double[2, 1, 2, 4, 3] w", "group = 2, strides = [1, 3, 1]", 2},
      {"double[1, 20, 30, 30] x, double[35, 20, 1, 1] w", "", 10},
      // More taps than are summed at once, with positions side by side.
      {"float[1, 300, 9, 9] x, float[35, 300, 1, 1] w, float[35] b", "", 8, "y = Relu(c)"},
      // Bounds, which leave NaN.
      {"float[2, 15, 20, 31] x, float[30, 1, 3, 3] w", "group = 15", 3, "y = Relu(c)", true},
      {"float[1, 6, 23, 31] x, float[40, 6, 1, 1] w", "", 4,
       "l = Constant<value_float = -0.5>() h = Constant<value_float = 2.0>() y = Clip(c, l, h)",
       true},
      // Other activations, by vectors of filters and of positions, and of single channels.
      {"float[1, 40, 14, 15] x, float[50, 40, 1, 1] w, float[50] b", "", 8, "y = HardSwish(c)",
       true},
      {"float[2, 21, 19, 33] x, float[21, 1, 3, 3] w, float[21] b",
       "group = 21, pads = [1, 1, 1, 1]", 6, "y = HardSigmoid<alpha = 0.25, beta = 0.375>(c)",
       true},
      {"double[1, 9, 16, 21] x, double[9, 1, 3, 3] w, double[9] b", "group = 9, strides = [2, 2]",
       5, "y = HardSwish(c)"},
      // Bounds out of order are not those of an activation.
      {"float[1, 6, 23, 31] x, float[40, 6, 1, 1] w", "", 4,
       "l = Constant<value_float = 2.0>() h = Constant<value_float = -0.5>() m = Max(c, l) "
       "y = Min(m, h)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.inputs);
    const std::string inputs = c.inputs;
    const Program program = program_of(
        fmt::format("g ({}) => (y) {{ {} = Conv{}(x, w{}) {} }}", inputs, *c.after == 0 ? "y" : "c",
                    *c.attributes == 0 ? "" : fmt::format("<{}>", c.attributes),
                    inputs.find(" b") == std::string::npos ? "" : ", b", c.after));
    EXPECT_GE(Steps(program, c.nan).run_all(), c.least);
  }
}

// Of bytes, less zero points, by dot products of taps and by vectors of channels: bit for bit.
TEST(CpuFamilies, EveryConfigurationOfAConvolutionOfBytesComputesTheSame) {
  struct Case {
    const char *type, *sizes, *attributes;
    int filters, taps;
  };
  const Case cases[] = {
      {"uint8", "1, 40, 7, 7", "group = 40, pads = [1, 1, 1, 1]", 40, 9},
      {"int8", "2, 19, 13, 9", "group = 19, pads = [1, 1, 1, 1], strides = [2, 1]", 38, 9},
      {"uint8", "1, 16, 30, 33", "group = 16, dilations = [2, 2]", 16, 9},
      {"int8", "1, 3, 21, 40", "group = 3, strides = [2, 2], pads = [0, 1, 0, 1]", 3, 9},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.sizes);
    std::vector<int> w;
    for (int i = 0; i < c.filters * c.taps; ++i) w.push_back(i * 7919 % 613 % 255 - 127);
    const Program program = program_of(fmt::format(
        "g ({}[{}] x) => (y) <int8[{},1,3,3] w = {{{}}}, {} p = {{7}}, int8 q = {{-3}}> {{ "
        "c = ConvInteger<{}>(x, w, p, q) f = Cast<to = 1>(c) "
        "u = Constant<value_float = 64.0>() o = Constant<value = uint8 {{3}}>() "
        "y = QuantizeLinear(f, u, o) }}",
        c.type, c.sizes, c.filters, fmt::join(w, ","), c.type, c.attributes));
    EXPECT_GE(Steps(program, false).run_all(), 3);
  }
}

// The family of a class of sizes is that of its representative, so that results do not depend on
// the sizes of earlier runs.
TEST(CpuFamilies, SizesOfRunsBeforeDecideNothing) {
  const auto session = [] {
    return Session(program_of(
        "g (float[m, k] x, float[k, 24] w) => (float[m, 24] y, float[m] s) { p = MatMul(x, w) "
        "y = Softmax<axis = -1>(p) a = Constant<value_ints = [-1]>() "
        "s = ReduceLogSumExp<keepdims = 0>(x, a) }"));
  };
  std::vector<Dims> sizes;
  for (const int64_t rows : {1, 17, 21, 40}) {
    for (int64_t depth = 450; depth <= 1300; depth += 50) sizes.push_back({rows, depth});
  }
  const auto run = [](Session& session, const Dims& dims) {
    return session.run({{"x", numbers(dims, false)}, {"w", numbers({dims[1], 24}, false)}});
  };
  Session rising = session(), falling = session();
  std::vector<NamedTensors> expected;
  for (const Dims& dims : sizes) expected.push_back(run(rising, dims));
  for (size_t i = sizes.size(); i-- > 0;) {
    const NamedTensors result = run(falling, sizes[i]);
    for (const auto& [name, tensor] : result) {
      const Tensor& other = expected[i].at(name);
      ASSERT_EQ(tensor.bytes(), other.bytes());
      EXPECT_EQ(std::memcmp(tensor.data(), other.data(), tensor.bytes()), 0)
          << name << " of " << sizes[i][0] << " x " << sizes[i][1];
    }
  }
}

// r is computed for the product, and anew in a division of the region of s.
TEST(CpuFamilies, ADivisionKeepsTheValuesOfOtherSteps) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float[1,512,12,12] x, float[1,2,256,1,1] w) "
      "=> "
      "(float[1,256,12,12] s, float[1,256,12,12] y) {"
      " one = Constant<value = int64[1] {1}>()"
      " halves = Constant<value = int64[5] {1, 2, 256, 12, 12}>() r = Relu(x)"
      " v = Reshape(r, halves) s = ReduceSum<keepdims = 0>(v, one) total = ReduceMean(s)"
      " e = Mul(w, total) m = Mul(v, e) y = ReduceSum<keepdims = 0>(m, one) }");
  const NamedTensors inputs = {{"x", numbers({1, 512, 12, 12}, false)},
                               {"w", numbers({1, 2, 256, 1, 1}, false)}};
  SessionOptions options;
  options.device = "cpu", options.threads = 1, options.tune = true;
  CompileOptions unfused;
  unfused.fuse = false;
  const NamedTensors wanted = Session(compile(model, unfused), options).run(inputs);
  const NamedTensors got = Session(compile(model), options).run(inputs);
  for (const auto& [name, tensor] : wanted) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      ASSERT_NEAR(got.at(name).as<float>()[i], tensor.as<float>()[i],
                  1e-4 * std::abs(tensor.as<float>()[i]) + 1e-4)
          << name;
    }
  }
}

TEST(CpuFamilies, LongListsAreMergedAndShortOnesInserted) {
  for (const auto& [k, merges] : {std::pair(9, "merges=0"), std::pair(20000, "merges=1")}) {
    const Program program = program_of(
        fmt::format("g (float[2, 20000] x) => (y, i) {{ k = Constant<value = int64[1] {{{}}}>() "
                    "y, i = TopK(x, k) }}",
                    k));
    Session session(program, {.device = "cpu", .threads = 1});
    session.run({{"x", numbers({2, 20000}, false)}});
    bool found = false;
    for (const StepFacts& facts : session.step_facts()) {
      found |= facts.configuration.find(merges) != std::string::npos;
    }
    EXPECT_TRUE(found) << k;
  }
}

}  // namespace
}  // namespace redfuser
