// Concatenations of slices at a constant distance are reads of windows.
#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

struct Unfold {
  const char* name;
  Dims dims;     // of the input; negative: a symbol
  int64_t axis;  // that is cut
  int64_t first, window, step, count;
  int64_t joined;                    // the axis of the parts
  std::vector<int64_t> permutation;  // of a slice, before it gets the axis of the parts
  int64_t stride = 1;
};

const Unfold kUnfolds[] = {
    {"Rolling", {3, 20}, 1, 0, 5, 1, 16, 1, {}},
    {"Hops", {3, 20}, 1, 2, 4, 3, 5, 2, {}},
    {"OpenSizes", {-1, 20, -2}, 1, 0, 6, 2, 8, 1, {}},
    {"FirstAxis", {20, 3}, 0, 1, 3, 4, 5, 0, {}},
    {"Transposed", {2, 20, 3}, 1, 0, 4, 4, 5, 1, {0, 2, 1}},
    {"Backwards", {2, 20}, 1, 15, 5, -3, 6, 1, {}},
    {"Strided", {2, 30}, 1, 0, 10, 1, 7, 1, {}, 2},
    {"OfOneElement", {4, 9}, 1, 0, 1, 2, 4, 1, {}},
};

class JoinWindows : public Passes {
 protected:
  ir::ValueId ints(const std::vector<int64_t>& numbers) {
    return b.constant(integers({static_cast<int64_t>(numbers.size())}, numbers));
  }
  ir::ValueId slice(ir::ValueId x, int64_t axis, int64_t first, int64_t last, int64_t stride = 1) {
    return b.node("Slice", {x, ints({first}), ints({last}), ints({axis}), ints({stride})});
  }
  ir::ValueId part(ir::ValueId x, const Unfold& u, int64_t first) {
    ir::ValueId view = slice(x, u.axis, first, first + u.window, u.stride);
    if (!u.permutation.empty()) view = b.node("Transpose", {view}, {{"perm", u.permutation}});
    return b.node("Unsqueeze", {view, ints({u.joined})});
  }
  bool joins() { return run_pass(passes::join_windows, b.graph); }
  int64_t count(const std::string& op) const {
    const Ops ops = operators(b.graph);
    return std::count(ops.begin(), ops.end(), op);
  }
};

TEST_F(JoinWindows, OfEveryForm) {
  for (const Unfold& u : kUnfolds) {
    SCOPED_TRACE(u.name);
    b = GraphBuilder();
    const ir::ValueId x = input(u.dims);
    std::vector<ir::ValueId> parts;
    for (int64_t k = 0; k < u.count; ++k) parts.push_back(part(x, u, u.first + k * u.step));
    named_output(b.node("Concat", parts, {{"axis", u.joined}}), "y");
    EXPECT_TRUE(joins());
    EXPECT_EQ(count("Concat") + count("Slice"), 0);
    EXPECT_EQ(count("Gather"), 1);
  }
}

TEST_F(JoinWindows, OfWhatIsComputed) {
  const Unfold u{"", {3, 20}, 1, 0, 5, 1, 0, 1, {}};
  const ir::ValueId x = b.node("Exp", {input(u.dims)});
  std::vector<ir::ValueId> parts;
  for (int64_t k = 0; k < 6; ++k) parts.push_back(part(x, u, k));
  named_output(b.node("Concat", parts, {{"axis", u.joined}}), "y");
  EXPECT_TRUE(joins());
  EXPECT_EQ(count("Exp"), 1);
  EXPECT_EQ(count("Concat") + count("Slice"), 0);
}

// Each graph lacks one condition.
TEST_F(JoinWindows, OthersStay) {
  const auto expect_kept = [&](const std::vector<ir::ValueId>& parts, int64_t axis) {
    named_output(b.node("Concat", parts, {{"axis", axis}}), "y");
    EXPECT_FALSE(joins());
  };
  const Unfold u{"", {3, 20}, 1, 0, 5, 1, 0, 1, {}};
  for (const std::vector<int64_t>& starts :
       std::vector<std::vector<int64_t>>{{0, 1, 2, 4}, {0, 1}, {0, 0, 0, 0}, {0, 2, 1, 3}}) {
    b = GraphBuilder();
    const ir::ValueId x = input(u.dims);
    std::vector<ir::ValueId> parts;
    for (const int64_t start : starts) parts.push_back(part(x, u, start));
    expect_kept(parts, 1);
  }
  b = GraphBuilder();  // of two values
  const ir::ValueId x = input(u.dims), y = input(u.dims);
  expect_kept({part(x, u, 0), part(x, u, 1), part(y, u, 2), part(x, u, 3)}, 1);
  b = GraphBuilder();  // parts of several elements along the axis
  const ir::ValueId wide = input({20, 3});
  expect_kept(
      {slice(wide, 0, 0, 2), slice(wide, 0, 1, 3), slice(wide, 0, 2, 4), slice(wide, 0, 3, 5)}, 0);
  b = GraphBuilder();  // a step along two axes
  const ir::ValueId square = input({9, 9});
  std::vector<ir::ValueId> parts;
  for (int64_t k = 0; k < 5; ++k) {
    parts.push_back(
        b.node("Unsqueeze", {slice(slice(square, 0, k, k + 2), 1, k, k + 2), ints({0})}));
  }
  expect_kept(parts, 0);
}

}  // namespace
}  // namespace redfuser::testing
