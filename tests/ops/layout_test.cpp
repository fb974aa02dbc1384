#include "ops/lowering.h"
#include "support/ops_case.h"

namespace redfuser::testing {
namespace {

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}
Tensor ramp(Dims dims) {
  const int64_t count = element_count(dims);
  return floats(std::move(dims), counting(count));
}

std::vector<OpCase> cases() {
  const Tensor x = ramp({2, 3});
  return {
      {"transpose_default", "Transpose", 13, {x}, {}, {}, {3, 2}, {0, 3, 1, 4, 2, 5}},
      {"transpose_perm",
       "Transpose",
       13,
       {ramp({1, 2, 3})},
       {},
       {{"perm", List{2, 0, 1}}},
       {3, 1, 2},
       {0, 3, 1, 4, 2, 5}},
      {"reshape_copy_and_solve",
       "Reshape",
       13,
       {ramp({2, 3, 2}), integers({3}, {0, -1, 1})},
       {1},
       {},
       {2, 6, 1},
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {"flatten",
       "Flatten",
       13,
       {ramp({2, 1, 3})},
       {},
       {{"axis", int64_t{-1}}},
       {2, 3},
       {0, 1, 2, 3, 4, 5}},
      {"squeeze_attribute",
       "Squeeze",
       11,
       {ramp({1, 2, 1})},
       {},
       {{"axes", List{0}}},
       {2, 1},
       {0, 1}},
      {"squeeze_all", "Squeeze", 13, {ramp({1, 2, 1})}, {}, {}, {2}, {0, 1}},
      {"unsqueeze_attribute",
       "Unsqueeze",
       11,
       {ramp({2})},
       {},
       {{"axes", List{0, 2}}},
       {1, 2, 1},
       {0, 1}},
      {"unsqueeze_input",
       "Unsqueeze",
       13,
       {ramp({2}), integers({1}, {-1})},
       {1},
       {},
       {2, 1},
       {0, 1}},
      {"expand",
       "Expand",
       13,
       {ramp({2, 1}), integers({3}, {2, 1, 2})},
       {1},
       {},
       {2, 2, 2},
       {0, 0, 1, 1, 0, 0, 1, 1}},
      {"tile",
       "Tile",
       13,
       {x, integers({2}, {1, 2})},
       {1},
       {},
       {2, 6},
       {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
      {"concat_three",
       "Concat",
       13,
       {x, ramp({2, 1}), ramp({2, 2})},
       {},
       {{"axis", int64_t{-1}}},
       {2, 6},
       {0, 1, 2, 0, 0, 1, 3, 4, 5, 1, 2, 3}},
      {"split_attribute",
       "Split",
       11,
       {x},
       {},
       {{"axis", int64_t{1}}, {"split", List{1, 2}}},
       {2, 2},
       {1, 2, 4, 5},
       1,
       2},
      {"split_uneven",
       "Split",
       18,
       {ramp({5})},
       {},
       {{"num_outputs", int64_t{2}}},
       {2},
       {3, 4},
       1,
       2},
      {"slice_attributes",
       "Slice",
       1,
       {x},
       {},
       {{"starts", List{0, 1}}, {"ends", List{1, 9}}},
       {1, 2},
       {1, 2}},
      {"slice_backward",
       "Slice",
       13,
       {x, integers({1}, {-1}), integers({1}, {INT64_MIN}), integers({1}, {1}),
        integers({1}, {-1})},
       {1, 2, 3, 4},
       {},
       {2, 3},
       {2, 1, 0, 5, 4, 3}},
      {"slice_step",
       "Slice",
       13,
       {ramp({7}), integers({1}, {-6}), integers({1}, {INT64_MAX}), Tensor(), integers({1}, {2})},
       {1, 2, 4},
       {},
       {3},
       {1, 3, 5}},
      {"slice_empty",
       "Slice",
       13,
       {ramp({4}), integers({1}, {3}), integers({1}, {1})},
       {1, 2},
       {},
       {0},
       {}},
      // A start before the first element is limited to it, an end is not.
      {"slice_backward_from_before",
       "Slice",
       13,
       {ramp({4}), integers({1}, {-100}), integers({1}, {-100}), Tensor(), integers({1}, {-1})},
       {1, 2, 4},
       {},
       {1},
       {0}},
      {"pad_constant",
       "Pad",
       13,
       {x, integers({4}, {0, 1, 1, 0}), floats({}, {9})},
       {1, 2},
       {},
       {3, 4},
       {9, 0, 1, 2, 9, 3, 4, 5, 9, 9, 9, 9}},
      {"pad_crop", "Pad", 2, {x}, {}, {{"pads", List{0, -1, 0, 1}}}, {2, 3}, {1, 2, 0, 4, 5, 0}},
      {"pad_edge",
       "Pad",
       18,
       {ramp({3}), integers({2}, {2, 1}), Tensor(), integers({1}, {0})},
       {1, 3},
       {{"mode", std::string("edge")}},
       {6},
       {0, 0, 0, 1, 2, 2}},
      {"pad_reflect",
       "Pad",
       13,
       {ramp({3}), integers({2}, {2, 2})},
       {1},
       {{"mode", std::string("reflect")}},
       {7},
       {2, 1, 0, 1, 2, 1, 0}},
      {"pad_wrap",
       "Pad",
       19,
       {ramp({3}), integers({2}, {2, 2})},
       {1},
       {{"mode", std::string("wrap")}},
       {7},
       {1, 2, 0, 1, 2, 0, 1}},
      {"depth_to_space",
       "DepthToSpace",
       13,
       {ramp({1, 4, 1, 2})},
       {},
       {{"blocksize", int64_t{2}}},
       {1, 1, 2, 4},
       {0, 2, 1, 3, 4, 6, 5, 7}},
      {"space_to_depth",
       "SpaceToDepth",
       13,
       {ramp({1, 1, 2, 4})},
       {},
       {{"blocksize", int64_t{2}}},
       {1, 4, 1, 2},
       {0, 2, 1, 3, 4, 6, 5, 7}},
      {"gather_negative",
       "Gather",
       13,
       {x, integers({2}, {-1, 0})},
       {},
       {{"axis", int64_t{1}}},
       {2, 2},
       {2, 0, 5, 3}},
      {"gather_elements",
       "GatherElements",
       13,
       {x, integers({1, 3}, {1, 0, -1})},
       {},
       {},
       {1, 3},
       {3, 1, 5}},
      {"gather_nd", "GatherND", 13, {x, integers({2, 2}, {0, 1, 1, -1})}, {}, {}, {2}, {1, 5}},
      {"gather_nd_batch",
       "GatherND",
       13,
       {x, integers({2, 1}, {2, 0})},
       {},
       {{"batch_dims", int64_t{1}}},
       {2},
       {2, 3}},
      {"reverse_sequence",
       "ReverseSequence",
       10,
       {ramp({2, 3}), integers({2}, {3, 2})},
       {},
       {{"batch_axis", int64_t{0}}, {"time_axis", int64_t{1}}},
       {2, 3},
       {2, 1, 0, 4, 3, 5}},
      {"one_hot",
       "OneHot",
       11,
       {integers({3}, {0, -1, 7}), integers({}, {3}), floats({2}, {-1, 1})},
       {1, 2},
       {},
       {3, 3},
       {1, -1, -1, -1, -1, 1, -1, -1, -1}},
      {"trilu_upper",
       "Trilu",
       14,
       {ramp({2, 2}), integers({}, {1})},
       {1},
       {},
       {2, 2},
       {0, 1, 0, 0}},
      {"trilu_lower",
       "Trilu",
       14,
       {ramp({2, 2})},
       {},
       {{"upper", int64_t{0}}},
       {2, 2},
       {0, 0, 2, 3}},
      {"eye_like", "EyeLike", 9, {x}, {}, {{"k", int64_t{1}}}, {2, 3}, {0, 1, 0, 0, 0, 1}},
      {"range_float",
       "Range",
       11,
       {floats({}, {1}), floats({}, {2}), floats({}, {0.4f})},
       {0, 1, 2},
       {},
       {3},
       {1, 1.4, 1.8}},
      {"range_backward",
       "Range",
       11,
       {integers({}, {5}), integers({}, {0}), integers({}, {-2})},
       {0, 1, 2},
       {},
       {3},
       {5, 3, 1}},
  };
}

class OpsLayout : public ::testing::TestWithParam<OpCase> {};
TEST_P(OpsLayout, StaticShapes) { check(GetParam(), false); }
TEST_P(OpsLayout, SymbolicShapes) {
  if (GetParam().op == "GatherND") GTEST_SKIP() << "the length of its index tuples is static";
  if (GetParam().name == "squeeze_all") {  // its rank is that of a run
    EXPECT_THROW(check(GetParam(), true), NeedsValues);
    return;
  }
  check(GetParam(), true);
}
INSTANTIATE_TEST_SUITE_P(All, OpsLayout, ::testing::ValuesIn(cases()), case_name);

struct ReshapeCase {
  std::string name;
  Dims from;                // -1 - k is the symbol sk
  std::vector<int64_t> to;  // of Reshape; symbols likewise below -1
  std::string element;
};
std::ostream& operator<<(std::ostream& out, const ReshapeCase& c) { return out << c.name; }

class OpsReshape : public ::testing::TestWithParam<ReshapeCase> {};
TEST_P(OpsReshape, IndexIsMixedRadix) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, GetParam().from);
  std::vector<ir::ValueId> sizes;
  for (int64_t size : GetParam().to) {
    if (size >= -1) {
      sizes.push_back(b.constant(integers({1}, {size})));
    } else {
      const ir::ValueId like = b.input("like" + std::to_string(size), DType::Float32, {size + 1});
      sizes.push_back(b.node("Shape", {like}));
    }
  }
  const ir::ValueId target = b.node("Concat", sizes, {{"axis", int64_t{0}}});
  const ir::ValueId y = b.node("Reshape", {x, target});
  ops::Lowering lowering(b.graph, [&](ir::ValueId id) { return id == y; });
  EXPECT_EQ(to_string(*b.graph.pool, lowering.element(y, ops::output_axes(b.graph, y))),
            GetParam().element);
}
INSTANTIATE_TEST_SUITE_P(
    All, OpsReshape,
    ::testing::Values(
        ReshapeCase{"split_heads", {-1, -2, 64}, {0, 0, 4, 16}, "%0[i0,i1,16*i2 + i3]"},
        ReshapeCase{"merge_heads", {-1, -2, 4, 16}, {0, 0, 64}, "%0[i0,i1,i2//16,i2%16]"},
        ReshapeCase{"merge_rows", {-1, -2, 64}, {-1, 64}, "%0[i0//s1,i0%s1,i1]"},
        ReshapeCase{"split_rows", {-1, 8, 64}, {-1, 4, 2, 64}, "%0[i0,2*i1 + i2,i3]"},
        ReshapeCase{"shared_heads", {-1, 2, 3, -2, 8}, {0, 6, -3, 8}, "%0[i0,i1//3,i1%3,i2,i3]"},
        ReshapeCase{"ones", {-1, 1, -2}, {1, 0, -1}, "%0[i2//s1,0,i2%s1]"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace redfuser::testing
