// Scans whose iterations do not depend on one another: nodes over the whole axis, against the
// iterations one by one.
#include <gtest/gtest.h>

#include "onnx/import/import.h"
#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "support/control_flow.h"

namespace redfuser::testing {
namespace {

// A body over rows `v` of x, `u` of z (where it has two) and the carried value `s`.
struct MapCase {
  std::string name, body, attributes;
  bool maps = true, two = false;
};

std::ostream& operator<<(std::ostream& out, const MapCase& c) { return out << c.name; }

std::string scan_of(const MapCase& c) {
  const std::string inputs = c.two ? "(s, x, z)" : "(s, x)";
  const std::string formals = c.two ? "float[m] v, float[m] u" : "float[m] v";
  return fmt::format(
      "{}(float[rows, m] x, float[rows, m] z, float[n, m] s, float[m, k] w) => (float[n, m] t, "
      "float[a] y) {{ t, y = Scan <num_scan_inputs = {}, {}body = b (float[n, m] c, {}) => "
      "(float[n, m] d, float[b] o) {{ {} }}> {} }}",
      kHead, c.two ? 2 : 1, c.attributes, formals, c.body, inputs);
}

const std::string kSame = "d = Identity(c) ";
const std::string kAxes = "one = Constant<value_ints = [1]>() zero = Constant<value_ints = [0]>() ";

std::vector<MapCase> cases() {
  return {
      {"distances", kSame + kAxes + "e = Sub(c, v) o = ReduceSumSquare<keepdims = 0>(e, one)", ""},
      {"rows", "o = Neg(v) d = Identity(c)", ""},
      {"two_inputs", kSame + "o = Mul(v, u)", "", true, true},
      {"lower_rank", kSame + kAxes + "r = ReduceMax<keepdims = 0>(v, zero) o = Sub(c, r)", ""},
      {"all_axes", kSame + "e = Mul(c, v) o = ReduceSum<keepdims = 0>(e)", ""},
      {"all_axes_kept", kSame + "e = Mul(c, v) o = ReduceMin(e)", ""},
      {"last_axis", kSame + "o = Softmax<axis = -1>(v)", ""},
      {"first_axis", kSame + "e = Add(c, v) o = Softmax<axis = 0>(e)", ""},
      {"products", kSame + "e = MatMul(v, w) f = MatMul(c, w) o = Mul(e, f)", ""},
      {"new_axes",
       kSame + kAxes +
           "e = Unsqueeze(v, zero) f = Unsqueeze(u, zero) "
           "o = Concat<axis = 0>(e, f)",
       "", true, true},
      {"transposed", kSame + "e = Add(c, v) o = Transpose<perm = [1, 0]>(e)", ""},
      {"chosen", kSame + "i = Constant<value_ints = [0, 0]>() o = Gather<axis = 0>(v, i)", ""},
      {"chosen_rows",
       kSame + "e = Abs(v) h = Constant<value_float = 0.0>() "
               "f = Mul(e, h) i = Cast<to = 7>(f) o = Gather<axis = 0>(w, i)",
       ""},
      {"of_sizes",
       kSame + "q = Constant<value_ints = [0]>() p = Shape(c) g = Gather(p, q) "
               "h = Cast<to = 1>(g) o = Mul(v, h)",
       ""},
      {"functions", kSame + "o = LogSoftmax(v)", ""},
      {"other_axes", kSame + "o = Neg(v)", "scan_input_axes = [-1], scan_output_axes = [1], "},
      {"sums", "d = Add(c, v) o = Neg(v)", "", false},
      {"backwards", kSame + "o = Neg(v)", "scan_output_directions = [1], ", false},
      {"of_no_input", kSame + "o = Neg(c)", "", false},
      {"ranked", kSame + "i = Constant<value_ints = [1]>() o, p = TopK(v, i)", ""},
      {"of_lists", kSame + "q = SequenceConstruct(v, v) o = ConcatFromSequence<axis = 0>(q)", "",
       false},
      {"random", kSame + "r = RandomUniformLike(v) h = Constant<value_float = 0.0>() o = Mul(r, h)",
       "", false},
  };
}

NamedTensors inputs_of(int64_t rows, bool square) {
  const int64_t m = square ? rows : 3;
  return {{"x", ramp({rows, m}, -2)},
          {"z", ramp({rows, m}, 1)},
          {"s", ramp({2, m}, 0.25f)},
          {"w", ramp({m, 4}, -1)}};
}

class MappedScan : public ::testing::TestWithParam<MapCase> {};

TEST_P(MappedScan, EqualsIterations) {
  const Model model = Model::parse(scan_of(GetParam()));
  ASSERT_TRUE(model.handle()->needs_values.empty()) << model.handle()->needs_values;
  EXPECT_EQ(model.handle()->calls.empty(), GetParam().maps);
  Session session(compile(model));
  // Columns are as many as rows where columns are scanned.
  const bool square = GetParam().name == "other_axes";
  for (const int64_t rows : {4, 1, 100, 7}) {
    const NamedTensors inputs = inputs_of(rows, square);
    const NamedTensors got = session.run(inputs);
    for (const auto& [name, tensor] : evaluated(model, inputs)) {
      const Comparison comparison = compare(name, got.at(name), tensor, {1e-5, 1e-6});
      EXPECT_TRUE(comparison.passed) << rows << " rows: " << describe(comparison);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MappedScan, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// No iteration is repeated: the graph does not grow with the axis.
TEST(MappedScans, AreAsLargeAsTheBody) {
  const auto nodes = [](int rows) {
    return Model::parse(
               fmt::format("{}(float[{}, 3] x, float[2, 3] s) => (float[2, 3] t, float[a] y) {{ "
                           "t, y = Scan <num_scan_inputs = 1, body = b (float[2, 3] c, float[3] v) "
                           "=> (float[2, 3] d, float[2] o) {{ d = Identity(c) e = Sub(c, v) "
                           "o = ReduceL1<keepdims = 0>(e, i) i = Constant<value_ints = [1]>() }}> "
                           "(s, x) }}",
                           kHead, rows))
        .handle()
        ->graph.nodes.size();
  };
  EXPECT_EQ(nodes(8), nodes(60));
  EXPECT_EQ(nodes(8), nodes(1000));
  EXPECT_EQ(nodes(8), nodes(1));
}

TEST(MappedScans, GiveNothingForNoRows) {
  const Model model = Model::parse(scan_of(cases()[0]));
  Session session(compile(model));
  const NamedTensors got = session.run(inputs_of(0, false));
  EXPECT_EQ(got.at("y").dims(), (Dims{0, 2}));
  EXPECT_EQ(got.at("t").as<float>()[1], 0.75f);
}

}  // namespace
}  // namespace redfuser::testing
