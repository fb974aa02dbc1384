// Scatters over boxes are concatenations.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

// Updates over data[starts : starts + sizes] in the dimensions that tuples of positions have.
struct Assignment {
  const char* name;
  Dims data;  // negative: a symbol
  std::vector<int64_t> starts, sizes;
  std::vector<int64_t> order;  // of the outer dimensions of the positions; missing ones have one
  int concatenations = 1;
};

const Assignment kAssignments[] = {
    {"Front", {6, 4}, {0}, {2}, {0}},
    {"Middle", {6, 4}, {2}, {3}, {0}},
    {"End", {6, 4}, {5}, {1}, {0}},
    {"FromTheEnd", {6, 4}, {-2}, {2}, {0}},
    {"OpenSizes", {6, -1, 3}, {1}, {4}, {0}},
    {"SecondAxis", {6, 4, 2}, {0, 1}, {6, 2}, {0, 1}},
    {"TwoAxes", {6, 5, 2}, {2, 1}, {3, 3}, {0, 1}, 2},
    {"AllAxes", {6, 5, 4}, {2, 1, 3}, {3, 3, 1}, {0, 1, 2}, 3},
    {"Transposed", {6, 5, 2}, {2, 0}, {3, 5}, {1, 0}},
    {"OnePosition", {6, 5, 2}, {2, 0}, {1, 5}, {1}},
};

class JoinScatters : public Passes {
 protected:
  // Positions of all tuples, the first dimension of `order` outermost.
  Tensor positions(const Assignment& a) const {
    Dims dims;
    for (const int64_t d : a.order) dims.push_back(a.sizes[static_cast<size_t>(d)]);
    const int64_t count = elements_of(dims);
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> tuple = a.starts;
      int64_t rest = i;
      for (size_t k = dims.size(); k-- > 0; rest /= dims[k]) {
        tuple[static_cast<size_t>(a.order[k])] += rest % dims[k];
      }
      numbers.insert(numbers.end(), tuple.begin(), tuple.end());
    }
    dims.push_back(static_cast<int64_t>(a.starts.size()));
    return integers(dims, numbers);
  }
  static int64_t elements_of(const Dims& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    return count;
  }
  ir::ValueId assigned(const Assignment& a, ir::ValueId data) {
    const Tensor at = positions(a);
    Dims updates(at.dims().begin(), at.dims().end() - 1);
    updates.insert(updates.end(), a.data.begin() + static_cast<int64_t>(a.starts.size()),
                   a.data.end());
    return b.node("ScatterND", {data, b.constant(at), input(updates)});
  }
  // Updates of `size` along `axis`, from `first` in steps.
  ir::ValueId along(ir::ValueId data, const Dims& dims, int64_t axis, int64_t first, int64_t size,
                    int64_t step = 1) {
    Dims updates = dims;
    updates[static_cast<size_t>(axis)] = size;
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(axis) + 1; d < dims.size(); ++d) inner *= dims[d];
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < elements_of(updates); ++i) {
      numbers.push_back(first + step * (i / inner % size));
    }
    return b.node("ScatterElements", {data, b.constant(integers(updates, numbers)), input(updates)},
                  {{"axis", axis}});
  }
  bool joins() { return run_pass(passes::join_scatters, b.graph); }
  int64_t count(const std::string& op) const {
    const Ops ops = operators(b.graph);
    return std::count(ops.begin(), ops.end(), op);
  }
};

TEST_F(JoinScatters, OfTuples) {
  for (const Assignment& a : kAssignments) {
    SCOPED_TRACE(a.name);
    b = GraphBuilder();
    named_output(assigned(a, input(a.data)), "y");
    EXPECT_TRUE(joins());
    EXPECT_EQ(count("ScatterND"), 0);
    EXPECT_EQ(count("Concat"), a.concatenations);
  }
}

TEST_F(JoinScatters, OfElements) {
  named_output(along(input({3, 8, 2}), {3, 8, 2}, 1, 2, 3), "y");
  EXPECT_TRUE(joins());
  EXPECT_EQ(operators(b.graph), (Ops{"Slice", "Slice", "Concat"}));
}

// Positions that are functions of their indices, as of a mesh.
TEST_F(JoinScatters, OfComputedPositions) {
  const auto number = [&](int64_t n) { return b.constant(integers({}, {n})); };
  const ir::ValueId rows = b.node("Range", {number(2), number(5), number(1)});
  const ir::ValueId at = b.node("Unsqueeze", {rows, b.constant(integers({1}, {1}))});
  named_output(b.node("ScatterND", {input({6, 4}), at, input({3, 4})}), "y");
  EXPECT_TRUE(joins());
  EXPECT_EQ(count("ScatterND"), 0);
}

// A loop that writes one row at a time leaves one concatenation of the rows.
TEST_F(JoinScatters, OneBehindTheOther) {
  ir::ValueId y = input({2, 4, 3});
  for (int64_t row = 0; row < 4; ++row) y = along(y, {2, 4, 3}, 1, row, 1);
  named_output(y, "y");
  EXPECT_TRUE(joins());
  EXPECT_EQ(operators(b.graph), Ops{"Concat"});
}

TEST_F(JoinScatters, OverwrittenInPart) {
  const Dims dims{2, 9, 3};
  ir::ValueId y = input(dims);
  for (const int64_t first : {1, 4, 3}) y = along(y, dims, 1, first, 3);
  b.output(b.node("Exp", {y}));
  named_output(y, "y");
  EXPECT_TRUE(joins());
  EXPECT_EQ(count("Concat"), 1);
}

// A value between two scatters that another node reads stays.
TEST_F(JoinScatters, WithReadersBetween) {
  const Dims dims{2, 4, 3};
  const ir::ValueId first = along(input(dims), dims, 1, 1, 1);
  b.output(b.node("Exp", {first}));
  named_output(along(first, dims, 1, 2, 2), "y");
  EXPECT_TRUE(joins());
  EXPECT_EQ(count("Concat"), 2);
}

// Each graph lacks one condition.
TEST_F(JoinScatters, OthersStay) {
  const auto expect_kept = [&](ir::ValueId y) {
    named_output(y, "y");
    EXPECT_FALSE(joins());
    b = GraphBuilder();
  };
  const auto rows = [&](const std::vector<int64_t>& numbers, const ir::Attributes& attributes) {
    const auto size = static_cast<int64_t>(numbers.size());
    return b.node("ScatterND",
                  {input({6, 4}), b.constant(integers({size, 1}, numbers)), input({size, 4})},
                  attributes);
  };
  expect_kept(rows({1, 2}, {{"reduction", std::string("add")}}));
  expect_kept(rows({1, 3}, {}));
  expect_kept(rows({1, 1}, {}));
  expect_kept(along(input({3, 8}), {3, 8}, 1, 6, 3, -1));
  const ir::ValueId at =
      b.node("ArgMax", {input({2, 6})}, {{"axis", int64_t{1}}, {"keepdims", int64_t{1}}});
  expect_kept(b.node("ScatterND", {input({6, 4}), at, input({2, 4})}));
}

}  // namespace
}  // namespace redfuser::testing
