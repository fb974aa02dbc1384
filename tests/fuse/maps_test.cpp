// Which elementwise nodes a map computes, and which are in memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

size_t maps_of(const std::string& outputs, const std::string& body) {
  const Program program = compile(
      Model::parse(fmt::format("<ir_version: 9, opset_import: [\"\" : 20]> g (float[1,1,64] x, "
                               "float[8,9,64] a, float[8,9,64] b) => ({}) {{ {} }}",
                               outputs, body)));
  size_t maps = 0;
  for (const fuse::Step& step : program.handle()->plan.steps) {
    maps += std::holds_alternative<fuse::MapStep>(step.kind) ? 1 : 0;
  }
  return maps;
}

TEST(Maps, HaveTheNodesThatNoOtherStepNeeds) {
  struct Case {
    const char *outputs, *body;
    size_t maps;
  };
  const Case cases[] = {
      {"y", "c = Cos(x) y = Mul(a, c)", 1},
      {"y, z", "c = Cos(x) y = Mul(a, c) z = Mul(b, c)", 3},
      // A view of it is computed in both steps, the node once.
      {"y, z", "c = Cos(x) t = Transpose<perm = [1, 0, 2]>(c) y = Mul(a, t) z = Mul(b, t)", 3},
      {"y", "c = Cos(x) t = Transpose<perm = [1, 0, 2]>(c) y = Mul(a, t)", 1},
      {"y, z",
       "c = Cos(x) t = Transpose<perm = [1, 0, 2]>(c) u = Transpose<perm = [1, 0, 2]>(c) "
       "y = Mul(a, t) z = Mul(b, u)",
       3},
  };
  for (const Case& c : cases) EXPECT_EQ(maps_of(c.outputs, c.body), c.maps) << c.body;
}

// The number of steps of a graph over float[6,40] x and float[6,1] r.
size_t steps_of(const std::string& outputs, const std::string& body) {
  const Program program = compile(Model::parse(fmt::format(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float[6,40] x, float[6,1] r) => ({}) {{ "
      "a = Constant<value = int64[1] {{1}}>() o = Constant<value = int64 {{1}}>() {} }}",
      outputs, body)));
  return program.handle()->plan.steps.size();
}

// A reduction takes in what follows it element by element, if nothing else reads its results.
TEST(Reductions, HaveWhatFollowsElementByElement) {
  struct Case {
    const char *outputs, *body;
    size_t steps;
  };
  const Case cases[] = {
      {"y", "s = ReduceMax(x, a) t = Sqrt(s) y = Add(t, r)", 1},
      {"y", "i = ArgMax<axis = 1>(x) y = Cast<to = 1>(i)", 1},
      {"y", "s = CumSum(x, o) y = Cast<to = 10>(s)", 1},
      {"y, s", "s = ReduceMax(x, a) y = Sqrt(s)", 2},
      {"y", "s = ReduceMax(x, a) t = Transpose(s) y = Add(s, t)", 2},
      {"y", "s = ReduceMax(x, a) t = Expand(s, b) y = Sqrt(t) ", 2},
  };
  for (const Case& c : cases) {
    const std::string body = c.body;
    const bool expands = body.find("b)") != std::string::npos;
    const std::string size = expands ? "b = Constant<value = int64[3] {5, 6, 40}>() " : "";
    EXPECT_EQ(steps_of(c.outputs, size + body), c.steps) << body;
  }
}

}  // namespace
}  // namespace redfuser
