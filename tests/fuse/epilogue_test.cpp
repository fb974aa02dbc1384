// Which elementwise nodes join the step of an operator without a lowering.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

struct Counts {
  int opaque = 0, epilogues = 0, others = 0;
  bool operator==(const Counts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Counts& c) {
  return out << fmt::format("{} opaque, {} with epilogues, {} others", c.opaque, c.epilogues,
                            c.others);
}

Counts counts_of(const Program& program) {
  Counts counts;
  for (const fuse::Step& step : program.handle()->plan.steps) {
    const auto* opaque = std::get_if<fuse::OpaqueStep>(&step.kind);
    if (opaque == nullptr) {
      ++counts.others;
      continue;
    }
    ++counts.opaque;
    if (!opaque->epilogue) continue;
    ++counts.epilogues;
    EXPECT_EQ(step.writes, std::vector<ir::ValueId>{opaque->epilogue->value});
  }
  return counts;
}

Model model_of(const std::string& outputs, const std::string& body) {
  return Model::parse(
      fmt::format("<ir_version: 9, opset_import: [\"\" : 20]> "
                  "g (float[1,3,6,6] x, float[4,3,3,3] w, float[4,3,3,3] v, float[1,4,4,4] r, "
                  "float[2,4,4,4] wide) => ({}) {{ {} }}",
                  outputs, body));
}

TEST(OpaqueEpilogue, IsWhatOnlyFollowsElementByElement) {
  struct Case {
    const char *outputs, *body;
    Counts counts;
  };
  const Case cases[] = {
      {"y", "c = Conv(x, w) y = Relu(c)", {1, 1, 0}},
      {"y", "c = Conv(x, w) s = Sigmoid(c) y = Mul(c, s)", {1, 1, 0}},
      {"y", "c = Conv(x, w) s = Add(c, r) y = Relu(s)", {1, 1, 0}},
      {"y", "c = Conv(x, w) y = Cast<to = 10>(c)", {1, 1, 0}},
      {"y", "a = Conv(x, w) b = Conv(x, v) s = Add(a, b) y = Relu(s)", {2, 1, 0}},
      // Each makes its own narrower value; the last one also their sum.
      {"y",
       "k = Constant<value_float = 0.5>() a = Conv(x, w) p = QuantizeLinear(a, k) "
       "f = DequantizeLinear(p, k) b = Conv(x, v) q = QuantizeLinear(b, k) "
       "g = DequantizeLinear(q, k) s = Add(f, g) t = Relu(s) y = QuantizeLinear(t, k)",
       {2, 2, 0}},
      {"y",
       "k = Constant<value_float = 0.5>() a = Conv(x, w) p = QuantizeLinear(a, k) "
       "f = DequantizeLinear(p, k) s = Add(f, r) q = QuantizeLinear(s, k) "
       "g = DequantizeLinear(q, k) y = GlobalAveragePool(g)",
       {1, 1, 1}},
      // Also of parts of the result, or where its elements repeat.
      {"y",
       "k = Constant<value_float = 0.5>() a = Conv(x, w) p = QuantizeLinear(a, k) "
       "f = DequantizeLinear(p, k) y = Concat<axis = 1>(f, r)",
       {1, 1, 1}},
      {"y",
       "k = Constant<value_float = 0.5>() o = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() "
       "a = Conv(x, w) p = QuantizeLinear(a, k) f = DequantizeLinear(p, k) "
       "y = Resize<mode = \"nearest\">(f, , o)",
       {1, 1, 1}},
      {"y", "c = Conv(x, w) a = Relu(c) y = GlobalAveragePool(a)", {1, 0, 1}},
      {"y",
       "k = Constant<value_float = 0.5>() a = Conv<strides = [4, 4]>(x, w) "
       "p = QuantizeLinear(a, k) f = DequantizeLinear(p, k) y = Mul(f, r)",
       {1, 0, 1}},
      // Others read the result.
      {"y, c", "c = Conv(x, w) y = Relu(c)", {1, 0, 1}},
      {"y, z", "c = Conv(x, w) y = Relu(c) z = Neg(c)", {1, 0, 2}},
      {"y, z",
       "c = Conv(x, w) t = Transpose<perm = [0, 1, 3, 2]>(c) y = Add(t, r) z = Sub(t, r)",
       {1, 0, 2}},
      // The element of another place, or in several places.
      {"y", "c = Conv(x, w) y = Transpose<perm = [0, 1, 3, 2]>(c)", {1, 0, 1}},
      {"y", "c = Conv(x, w) t = Transpose<perm = [0, 1, 3, 2]>(c) y = Add(c, t)", {1, 0, 1}},
      {"y", "c = Conv(x, w) y = Add(c, wide)", {1, 0, 1}},
      // Its kernels take none.
      {"y", "p = MaxPool<kernel_shape = [2, 2]>(x) y = Relu(p)", {1, 0, 1}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.body);
    EXPECT_EQ(counts_of(compile(model_of(c.outputs, c.body))), c.counts);
  }
}

// A region reads the floats that a convolution of integers makes of its sums: it would compute them
// for the range of their values and again for the codes.
TEST(OpaqueEpilogue, MakesTheFloatsOfAQuantisedRange) {
  struct Case {
    const char *floats, *body;
  };
  const Case cases[] = {
      {"m", "m = Mul(f, s) y, p, z = DynamicQuantizeLinear(m)"},
      {"t", "m = Mul(f, s) a = Add(m, b) t = Relu(a) y, p, z = DynamicQuantizeLinear(t)"},
      {"t", "m = Mul(f, s) a = Add(m, b) t = Add(a, r) y, p, z = DynamicQuantizeLinear(t)"},
      {"h", "m = Mul(f, s) h = HardSwish(m) y, p, z = DynamicQuantizeLinear(h)"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.body);
    const Model model = Model::parse(fmt::format(
        "<ir_version: 9, opset_import: [\"\" : 20]> g (uint8[1,3,6,6] x, int8[4,3,3,3] w, "
        "float[1] s, float[1,4,4,4] r) => (y, p, z) <float[1,4,1,1] b = {{1, 2, 3, 4}}> {{ "
        "c = ConvInteger(x, w) f = Cast<to = 1>(c) {} }}",
        each.body));
    const Program program = compile(model);
    EXPECT_EQ(counts_of(program), (Counts{1, 1, 1}));
    for (const fuse::Step& step : program.handle()->plan.steps) {
      if (!std::holds_alternative<fuse::OpaqueStep>(step.kind)) continue;
      const auto written = static_cast<size_t>(step.writes.at(0));
      EXPECT_EQ(program.handle()->plan.graph->values[written].name, each.floats);
    }
  }
}

TEST(OpaqueEpilogue, IsAStepOfItsOwnWithoutFusion) {
  CompileOptions options;
  options.fuse = false;
  const Model model = model_of("y", "c = Conv(x, w) y = Relu(c)");
  EXPECT_EQ(counts_of(compile(model, options)), (Counts{1, 0, 1}));
}

TEST(OpaqueEpilogue, ChecksThePositionsThatItReads) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> "
      "g (float[1,3,6,6] x, float[4,3,3,3] w, float[9,4,4] table, int64[1] at) => (y) {"
      " c = Conv(x, w) t = Gather<axis = 0>(table, at) y = Add(c, t) }");
  const Program program = compile(model);
  EXPECT_EQ(counts_of(program), (Counts{1, 1, 0}));
  Session session(program, {.device = "cpu", .threads = 1});
  Tensor at(DType::Int64, {1});
  at.as<int64_t>()[0] = 9;
  const auto zeros = [](Dims dims) {
    Tensor tensor(DType::Float32, std::move(dims));
    std::fill_n(tensor.as<float>(), tensor.size(), 0.0f);
    return tensor;
  };
  const NamedTensors inputs = {{"x", zeros({1, 3, 6, 6})},
                               {"w", zeros({4, 3, 3, 3})},
                               {"table", zeros({9, 4, 4})},
                               {"at", at}};
  EXPECT_THROW(session.run(inputs), UserError);
}

}  // namespace
}  // namespace redfuser
