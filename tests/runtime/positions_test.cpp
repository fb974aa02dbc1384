// Positions that are data: a run refuses those that are out of range, fused or not.
#include <gtest/gtest.h>

#include "redfuser/redfuser.h"
#include "runtime/program/compiled_program.h"
#include "support/text_model.h"

namespace redfuser {
namespace {

struct PositionsCase {
  std::string name, text;
  int64_t size;  // that `ids` are positions in
};

std::ostream& operator<<(std::ostream& out, const PositionsCase& c) { return out << c.name; }

std::string one_node(const std::string& body) {
  return "g (float[n, m] x, int64[k] ids) => (y) { " + body + " }";
}

const PositionsCase kCases[] = {
    {"alone", one_node("y = Gather(x, ids)"), 4},
    {"columns", one_node("y = Gather<axis = 1>(x, ids)"), 3},
    {"elements",
     one_node("a = Constant<value_ints = [1]>() c = Unsqueeze(ids, a) y = GatherElements<axis = "
              "1>(x, c)"),
     3},
    {"tuples",
     one_node("a = Constant<value_ints = [1]>() t = Unsqueeze(ids, a) y = GatherND(x, t)"), 4},
    {"narrowed", one_node("i = Cast<to = 6>(ids) y = Gather(x, i)"), 4},
    {"in_a_cascade", one_node("r = Gather(x, ids) y = Softmax<axis = -1>(r)"), 4},
    {"in_a_product", one_node("r = Gather(x, ids) t = Transpose(x) y = MatMul(r, t)"), 4},
    {"read_twice",
     one_node("r = Gather(x, ids) s = Exp(r) t = ReduceSum<keepdims = 0>(r) y = Add(s, t)"), 4},
    {"after_a_kernel",
     one_node("a = Constant<value_int = 0>() b = Constant<value_ints = [0]>() "
              "u = Unsqueeze(ids, b) c = CumSum(u, a) i = Squeeze(c, b) y = Gather(x, i)"),
     4},
};

class Positions : public testing::TestWithParam<PositionsCase> {};

NamedTensors inputs_with(std::vector<int64_t> ids) {
  Tensor x(DType::Float32, {4, 3});
  for (int64_t i = 0; i < x.size(); ++i) x.as<float>()[i] = static_cast<float>(i);
  Tensor positions(DType::Int64, {static_cast<int64_t>(ids.size())});
  std::copy(ids.begin(), ids.end(), positions.as<int64_t>());
  return {{"x", x}, {"ids", positions}};
}

TEST_P(Positions, OutOfRangeIsRefused) {
  const TextModel file(GetParam().text);
  const int64_t size = GetParam().size;
  for (const bool fuse : {false, true}) {
    CompileOptions options;
    options.fuse = fuse;
    Session session(compile(Model::load(file.path()), options));
    session.run(inputs_with({0, -size, size - 1, -1}));
    session.run(inputs_with({}));
    for (const int64_t wrong : {size, -size - 1, int64_t{1} << 20}) {
      try {
        session.run(inputs_with({0, wrong, 1, 1}));
        ADD_FAILURE() << wrong << " is taken, fused: " << fuse;
      } catch (const UserError& error) {
        const std::string expected =
            "index " + std::to_string(wrong) + " is out of range for size " + std::to_string(size);
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
      }
    }
    session.run(inputs_with({1, 2, 0, 0}));
  }
}

INSTANTIATE_TEST_SUITE_P(Runtime, Positions, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(PositionGuards, WhatIsProvedIsNotLookedAt) {
  const TextModel file(
      "g (float[n, m] x) => (y) {"
      "  best = ArgMax<axis = 0, keepdims = 0>(x)"
      "  y = Gather(x, best)"
      "}");
  const Program program = compile(Model::load(file.path()));
  for (const auto& guards : program.handle()->guards) EXPECT_TRUE(guards.empty());
}

// Positions that are constants are checked at each new set of sizes.
TEST(PositionGuards, OfConstantsFollowTheSizes) {
  const TextModel file(
      "g (float[n, 3] x) => (y) {"
      "  ids = Constant<value_ints = [0, 5]>()"
      "  y = Gather(x, ids)"
      "}");
  Session session(compile(Model::load(file.path())));
  const auto runs = [&](int64_t rows) {
    Tensor x(DType::Float32, {rows, 3});
    std::fill_n(x.as<float>(), x.size(), 1.0f);
    try {
      session.run({{"x", x}});
      return true;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("index 5 is out of range"), std::string::npos);
      return false;
    }
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(runs(8));
    EXPECT_TRUE(runs(8));
    EXPECT_FALSE(runs(4));
    EXPECT_FALSE(runs(4));
    EXPECT_TRUE(runs(6));
  }
}

// Positions that a run on any device checks before it starts.
TEST(PositionGuards, InputsDecideSome) {
  const TextModel file(
      "g (float[n, m] x, int64[k] ids) => (y, z) {"
      "  moved = Add(ids, ids)"
      "  y = Gather(x, moved)"
      "  best = ArgMax<axis = 1, keepdims = 0>(x)"
      "  z = Gather(x, best)"
      "}");
  const Program program = compile(Model::load(file.path()));
  EXPECT_EQ(program.handle()->input_guards.size(), 1u);
}

}  // namespace
}  // namespace redfuser
