// Outputs that are an input followed by new positions.
#include "fuse/growing/appends.h"

#include <gtest/gtest.h>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

struct AppendCase {
  const char* name;
  const char* graph;
  std::vector<std::string> found;  // "past -> present along axis"
};

std::vector<std::string> appends_of(const char* text) {
  const Program program =
      compile(Model::parse(std::string("<ir_version: 8, opset_import: [\"\" : 17]> ") + text));
  const ir::Graph& graph = program.handle()->graph();
  std::vector<std::string> found;
  for (const fuse::Append& append : program.handle()->appends) {
    const auto name = [&](ir::ValueId id) { return graph.values[static_cast<size_t>(id)].name; };
    found.push_back(name(append.past) + " -> " + name(append.present) + " along " +
                    std::to_string(append.axis));
  }
  return found;
}

class Appends : public ::testing::TestWithParam<AppendCase> {};

TEST_P(Appends, AreFound) { EXPECT_EQ(appends_of(GetParam().graph), GetParam().found); }

INSTANTIATE_TEST_SUITE_P(
    Fuse, Appends,
    ::testing::Values(
        AppendCase{"Concatenated",
                   "g (float[b, p, 8] c, float[b, s, 8] x) => (float[b, t, 8] y) {"
                   "  y = Concat<axis = 1>(c, x) }",
                   {"c -> y along 1"}},
        AppendCase{
            "ComputedOnTheWay",
            "g (float[b, p, 8] c, float[b, 8, s] x) => (float[b, t, 8] y, float[b, t, 8] z) {"
            "  n = Exp(x)  m = Transpose<perm = [0, 2, 1]>(n)  y = Concat<axis = 1>(c, m)"
            "  z = Softmax(y) }",
            {"c -> y along 1"}},
        AppendCase{"OfTwoCaches",
                   "g (float[b, p, 8] c, float[b, p, 8] d, float[b, 1, 8] x)"
                   "  => (float[b, t, 8] y, float[b, t, 8] z) {"
                   "  y = Concat<axis = 1>(c, x)  z = Concat<axis = 1>(d, x) }",
                   {"c -> y along 1", "d -> z along 1"}},
        AppendCase{"InFront",
                   "g (float[b, p, 8] c, float[b, s, 8] x) => (float[b, t, 8] y) {"
                   "  y = Concat<axis = 1>(x, c) }",
                   {"x -> y along 1"}},
        AppendCase{"Changed",
                   "g (float[b, p, 8] c, float[b, s, 8] x) => (float[b, t, 8] y) {"
                   "  e = Exp(c)  y = Concat<axis = 1>(e, x) }",
                   {}},
        AppendCase{
            "ReadElsewhere",
            "g (float[b, p, 8] c, float[b, s, 8] x) => (float[b, t, 8] y, float[b, p, 8] z) {"
            "  y = Concat<axis = 1>(c, x)  z = Softmax(c) }",
            {}},
        AppendCase{"ReshapedAfterwards",
                   "g (float[b, p, 8] c, float[b, s, 8] x) => (float[b, t, 8] y, float[b, n] z) {"
                   "  y = Concat<axis = 1>(c, x)  z = Flatten(y) }",
                   {}},
        AppendCase{"OfAFixedSize",
                   "g (float[b, 4, 8] c, float[b, 1, 8] x) => (float[b, 5, 8] y) {"
                   "  y = Concat<axis = 1>(c, x) }",
                   {}},
        AppendCase{"OfTheSameSize",
                   "g (float[n] c, float[n] x) => (float[m] y) { y = Concat<axis = 0>(c, x) }",
                   {}}),
    [](const auto& info) { return info.param.name; });

// Appends of equal sizes grow together; dense memory has no room and is written from the start.
TEST(AppendSymbols, AreSharedAndDenseByDefault) {
  const Program program = compile(Model::parse(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[p, 8] c, float[p, 8] d, float[q, 8] e,"
      " float[3, 8] x) => (float[t, 8] y, float[t, 8] z, float[u, 8] w) {"
      "  y = Concat<axis = 0>(c, x)  z = Concat<axis = 0>(d, x)  w = Concat<axis = 0>(e, x) }"));
  const auto& appends = program.handle()->appends;
  ASSERT_EQ(appends.size(), 3u);
  EXPECT_EQ(appends[0].begin, appends[1].begin);
  EXPECT_EQ(appends[0].room, appends[1].room);
  EXPECT_NE(appends[0].room, appends[2].room);
  const ir::Graph& graph = program.handle()->graph();
  std::vector<int64_t> symbols(program.handle()->symbol_names.size(), 5);
  bind_dense(appends[0], graph, symbols);
  EXPECT_EQ(symbols[static_cast<size_t>(appends[0].begin->integer)], 0);
  EXPECT_EQ(symbols[static_cast<size_t>(appends[0].room->integer)], 8);
}

}  // namespace
}  // namespace redfuser
