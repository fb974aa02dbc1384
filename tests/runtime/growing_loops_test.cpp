// Loops whose values grow from one iteration to the next: against the same model node by node, and
// how often their bodies are planned.
#include <gtest/gtest.h>

#include "base/tensors/room.h"
#include "redfuser/compare.h"
#include "runtime/cpu/call_run.h"
#include "runtime/cpu/growing_program.h"
#include "support/control_flow.h"
#include "support/graph_builder.h"

namespace redfuser::testing {
namespace {

struct LoopCase {
  std::string name, text;
};

std::ostream& operator<<(std::ostream& out, const LoopCase& c) { return out << c.name; }

// A loop of t iterations over s, which begins as x; `body` computes r.
std::string loop_of(const std::string& body, const std::string& type = "float[k, 4]") {
  return "(float[n, 4] x, float[4, 4] w, int64 t) => (" + type +
         " y) { y = Loop <body = b (int64 "
         "i, bool go, " +
         type + " s) => (bool on, " + type + " r) { on = Identity(go) " + body +
         " }> (t, \"\", x) }";
}

const std::string kLast = "l = Constant<value_ints = [-1]>() e = Gather<axis = 0>(s, l) ";

std::vector<LoopCase> cases() {
  return {
      {"appends_a_row", loop_of(kLast + "m = MatMul(e, w) h = Tanh(m) "
                                        "r = Concat<axis = 0>(s, h)")},
      {"appends_before", loop_of(kLast + "h = Neg(e) r = Concat<axis = 0>(h, s)")},
      {"product_of_all_rows", loop_of(kLast + "m = MatMul(s, w) h = Tanh(m) "
                                              "r = Concat<axis = 0>(h, e)")},
      {"attends_to_all",
       loop_of(kLast + "q = MatMul(e, w) st = Transpose(s) c = MatMul(q, st) "
                       "p = Softmax<axis = -1>(c) h = MatMul(p, s) r = Concat<axis = 0>(s, h)")},
      {"reduces_all", loop_of("h = ReduceMean<axes = [0], keepdims = 1>(s) f = Sin(h) "
                              "r = Concat<axis = 0>(s, f)")},
      {"appends_the_first_rows",
       loop_of("g = Slice(s, a, o, a) "
               "a = Constant<value_ints = [0]>() o = Constant<value_ints = [2]>() "
               "f = Cos(g) r = Concat<axis = 0>(s, f)")},
      {"shrinks", loop_of("a = Constant<value_ints = [1]>() e = Constant<value_ints = [99]>() "
                          "z = Constant<value_ints = [0]>() v = Slice(s, a, e, z) "
                          "c = Concat<axis = 0>(v, w, v) o = Constant<value_ints = [9]>() "
                          "r = Slice(c, z, o, z)")},
      // One value goes on in two ways; only one of them may do so in place.
      {"forks",
       "(float[n, 4] x, float[4, 4] w, int64 t) => (float[k, 4] y, float[j, 4] z) { y, z = Loop "
       "<body = b (int64 i, bool go, float[k, 4] s, float[k, 4] u) => (bool on, float[j, 4] r, "
       "float[j, 4] v) { on = Identity(go) l = Constant<value_ints = [-1]>() "
       "e = Gather<axis = 0>(s, l) f = Gather<axis = 0>(u, l) g = Add(f, f) h = Sin(e) "
       "r = Concat<axis = 0>(s, g) v = Concat<axis = 0>(s, h) }> (t, \"\", x, x) }"},
      {"swaps",
       "(float[n, 4] x, float[4, 4] w, int64 t) => (float[k, 4] y, float[j, 4] z) { y, z = Loop "
       "<body = b (int64 i, bool go, float[k, 4] s, float[l, 4] u) => (bool on, float[l, 4] r, "
       "float[j, 4] v) { on = Identity(go) l = Constant<value_ints = [-1]>() "
       "e = Gather<axis = 0>(s, l) h = Sin(e) v = Concat<axis = 0>(s, h) r = Identity(u) }> "
       "(t, \"\", x, x) }"},
      // The rows are not the outermost axis.
      {"grows_inside",
       "(float[n, 4] x, float[4, 4] w, int64 t) => (float[4, k] y, float[j, 4] z) { "
       "x0 = Transpose(x) y, z = Loop <body = b (int64 i, bool go, float[4, k] s) => (bool on, "
       "float[4, l] r, float[4] p) { on = Identity(go) a = Constant<value_ints = [1]>() "
       "m = ReduceMax<axes = [1], keepdims = 1>(s) h = Sin(m) r = Concat<axis = 1>(s, h) "
       "p = Squeeze(h, a) }> (t, \"\", x0) }"},
      // Indices that grow, and what they gather.
      {"gathers_by_what_grows",
       "(float[n, 4] x, float[4, 4] w, int64 t) => (int64[k] y, float[4] z) { "
       "y0 = Constant<value_ints = [1, 3, 2]>() z0 = Constant<value_floats = [1.0,2.0,3.0,4.0]>() "
       "y, z = Loop <body = b (int64 i, bool go, int64[k] s, float[4] u) => (bool on, int64[l] r, "
       "float[4] v) { on = Identity(go) e = Gather<axis = 0>(w, s) "
       "m = ReduceMean<axes = [0], keepdims = 0>(e) v = Add(m, u) g = ArgMax<axis = 0, keepdims = "
       "1>(v) "
       "r = Concat<axis = 0>(s, g) }> (t, \"\", y0, z0) }"},
      // An inner loop begins anew, from no row, in each iteration.
      {"loop_in_a_loop",
       loop_of("z = Constant<value = float[0, 4] {}>() c = Loop <body = d (int64 j, bool go2, "
               "float[q, 4] a) => (bool on2, float[p, 4] f) { on2 = Identity(go2) "
               "j1 = Unsqueeze(j, o) o = Constant<value_ints = [0]>() g = Gather<axis = 0>(w, j1) "
               "f = Concat<axis = 0>(a, g) }> (four, \"\", z) four = Constant<value_int = 4>() "
               "z0 = Constant<value_ints = [0]>() n = ReduceSum<keepdims = 1>(c, z0) k = Sin(n) r "
               "= Concat<axis = 0>(s, k)")},
      // Normalised rows of a table, such as tokens of a decoder, and positions of them.
      {"normalises_what_it_gathers",
       "(float[n, 4] x, float[4, 4] w, int64 t) => (int64[1, k] y, float[j, 4] z) { "
       "y0 = Constant<value = int64[1, 3] {1, 3, 2}>() "
       "y, z = Loop <body = b (int64 i, bool go, int64[1, k] s) => (bool on, int64[1, l] r, "
       "float[4] p) { on = Identity(go) e = Gather<axis = 0>(w, s) "
       "u = Constant<value_floats = [1.0,2.0,3.0,4.0]>() "
       "n = LayerNormalization<axis = -1>(e, u) f = MatMul(n, w) "
       "p = ReduceMean<axes = [0, 1], keepdims = 0>(f) four = Constant<value_int = 4>() "
       "g = Mod(i, four) g1 = Constant<value_ints = [1, 1]>() g2 = Reshape(g, g1) "
       "r = Concat<axis = 1>(s, g2) }> (t, \"\", y0) }"},
      {"branches_of_other_sizes",
       loop_of(
           "three = Constant<value_int = 3>() z = Mod(i, three) two = Constant<value_int = 2>() "
           "c = Less(z, two) r = If(c) <then_branch = d () => (float[p, 4] f) { "
           "f = Concat<axis = 0>(s, x) }, else_branch = e () => (float[q, 4] g) { "
           "a = Constant<value_ints = [1]>() o = Constant<value_ints = [99]>() "
           "b = Constant<value_ints = [0]>() v = Slice(s, a, o, b) g = Sin(v) }>")},
  };
}

class GrowingLoop : public ::testing::TestWithParam<LoopCase> {};

// Twice in one session, which gives the same bits: plans are chosen anew in each run.
TEST_P(GrowingLoop, EqualsNodesOneByOne) {
  const Model model =
      Model::parse("<ir_version: 8, opset_import: [\"\" : 17]> g " + GetParam().text);
  Session session(compile(model));
  NamedTensors first;
  for (const int64_t t : {0, 1, 3, 40, 40}) {
    const NamedTensors inputs{
        {"x", ramp({1, 4}, -0.75f)}, {"w", ramp({4, 4}, -3.5f)}, {"t", integers({}, {t})}};
    const NamedTensors got = session.run(inputs);
    for (const auto& [name, tensor] : evaluated(model, inputs)) {
      const Comparison near = compare(name, got.at(name), tensor, {1e-5, 1e-5});
      EXPECT_TRUE(near.passed) << t << ": " << describe(near);
    }
    if (t == 40 && !first.empty()) {
      for (const auto& [name, tensor] : first) {
        EXPECT_TRUE(compare(name, got.at(name), tensor, {0, 0}).passed) << name;
      }
    }
    if (t == 40) first = got;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GrowingLoop, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// The body of the only loop of a program, with its inputs in order.
class LoopBody {
 public:
  explicit LoopBody(const std::string& text)
      : program_(compile(Model::parse("<ir_version: 8, opset_import: [\"\" : 17]> g " + text))),
        body_(*program_.handle()->bodies.begin()->second.front(), pool_, false) {}

  Tensor run(const Tensor& state, const std::vector<Tensor>& captured) {
    Tensor on(DType::Bool, {});
    *on.as<bool>() = true;
    const Tensor trip = integers({}, {3});
    std::vector<const Tensor*> inputs{&trip, &on, &state};
    for (const Tensor& tensor : captured) inputs.push_back(&tensor);
    return body_.run(inputs, int64_t{1} << 30, nullptr)[1];
  }
  runtime::BodyRun& body() { return body_; }

 private:
  ThreadPool pool_{1};
  Program program_;
  runtime::BodyRun body_;
};

// Two programs for the first sizes, one for the others, and a plan each time that the memory
// doubles, in which values are appended in place. A second run makes none.
TEST(GrowingLoopPlans, AreMadeOnceUntilTheMemoryDoubles) {
  LoopBody loop(loop_of("r = Concat<axis = 0>(s, w)"));
  const std::vector<Tensor> captured{ramp({4, 4}, 1)};
  for (int run = 0; run < 2; ++run) {
    loop.body().restart();
    Tensor state = ramp({1, 4}, 0);
    int moved = 0;
    const void* memory = nullptr;
    for (int i = 0; i < 100; ++i) {
      state = loop.run(state, captured);
      ASSERT_EQ(state.dims(), (Dims{4 * i + 5, 4}));
      const auto room = room_of(state);
      if (room == nullptr) continue;
      moved += room->tensor.data() != memory;
      memory = room->tensor.data();
    }
    EXPECT_EQ(loop.body().programs(), 3);
    EXPECT_EQ(loop.body().growing_plans(), 5);  // 32, 64, ... 512 rows
    EXPECT_EQ(moved, 5);
  }
}

// Two values that continue the same one both keep their rows.
TEST(GrowingLoopPlans, ContinueAValueInPlaceOnce) {
  LoopBody loop(loop_of("r = Concat<axis = 0>(s, w)"));
  Tensor state = ramp({1, 4}, 0);
  for (int i = 0; i < 10; ++i) state = loop.run(state, {ramp({4, 4}, 1)});
  const Tensor one = loop.run(state, {ramp({4, 4}, 2)});
  const Tensor other = loop.run(state, {ramp({4, 4}, 3)});
  ASSERT_NE(room_of(one), nullptr);
  EXPECT_EQ(room_of(one), room_of(state));
  EXPECT_NE(room_of(other), room_of(state));
  EXPECT_EQ(one.as<float>()[one.size() - 16], 2);
  EXPECT_EQ(other.as<float>()[other.size() - 16], 3);
}

// Sizes that stay for several runs have a plan for them alone.
TEST(GrowingLoopPlans, EndWhereSizesStay) {
  LoopBody loop(loop_of("r = Concat<axis = 0>(s, w)"));
  const std::vector<Tensor> captured{ramp({4, 4}, 1)};
  for (const int64_t rows : {1, 2, 3, 4, 5}) loop.run(ramp({rows, 4}, 0), captured);
  EXPECT_NE(room_of(loop.run(ramp({6, 4}, 0), captured)), nullptr);
  for (int i = 0; i < 4; ++i) loop.run(ramp({6, 4}, 0), captured);
  EXPECT_EQ(room_of(loop.run(ramp({6, 4}, 0), captured)), nullptr);
}

// Steps that read at indices that grow: with a plan for all lengths, which visits no position
// beyond a run's, or packed.
TEST(GrowingLoopPlans, ReadAtIndicesThatGrow) {
  struct Case {
    std::string indices, y;
    int packed;
  };
  for (const auto& [indices, y, packed] : {
           Case{"k", "y = Sin(e)", 0},
           Case{"k", "y = Softmax<axis = -1>(e)", 0},
           Case{"k", "y = Softmax<axis = 0>(e)", 0},
           Case{"k", "y = MatMul(e, w)", 0},
           Case{"2, k", "y = Softmax<axis = -1>(e)", 1},
       }) {
    SCOPED_TRACE(indices + ": " + y);
    const auto program =
        compile(Model::parse("<ir_version: 8, opset_import: [\"\" : 17]> g "
                             "(float[40, 4] table, float[4, 4] w, int64[" +
                             indices + "] s) => (y) { e = Gather(table, s) " + y + " }"))
            .handle();
    ASSERT_EQ(program->symbol_names.size(), 1u);
    const auto growing = runtime::make_growing_program(
        *program, {}, runtime::growing_sizes({}, {5}, {true}, 0, 5), 1);
    ASSERT_NE(growing, nullptr);
    int count = 0;
    for (const auto& step : growing->steps) count += step.packed ? 1 : 0;
    EXPECT_EQ(count, packed);
  }
}

// Positions are checked at each length.
TEST(GrowingLoopErrors, NameThePositionThatIsOutOfRange) {
  const Model model = Model::parse(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[40, 2] table, int64 t) => "
      "(int64[k] y, float[j, 2] z) { y0 = Constant<value_ints = [0]>() "
      "y, z = Loop <body = b (int64 i, bool go, int64[k] s) => (bool on, int64[l] r, float[2] p) { "
      "on = Identity(go) a = Constant<value_ints = [0]>() e = Gather<axis = 0>(table, s) "
      "p = ReduceMax<axes = [0], keepdims = 0>(e) i1 = Unsqueeze(i, a) "
      "r = Concat<axis = 0>(s, i1) }> (t, \"\", y0) }");
  Session session(compile(model));
  const NamedTensors table{{"table", ramp({40, 2}, 0)}};
  NamedTensors inputs = table;
  inputs["t"] = integers({}, {41});
  EXPECT_EQ(session.run(inputs).at("z").as<float>()[80], 39.0f);
  inputs["t"] = integers({}, {60});
  try {
    session.run(inputs);
    ADD_FAILURE() << "position 40 of 40 was read";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("[Gather]"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("40 is out of range for size 40"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace redfuser::testing
