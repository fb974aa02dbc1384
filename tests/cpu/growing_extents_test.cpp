// Which positions a plan of growing sizes visits.
#include "cpu/steps/growing_extents.h"

#include <gtest/gtest.h>

namespace redfuser::cpu {
namespace {

using Axes = std::vector<ir::Expr>;

struct GrowingExtentsTest : ::testing::Test {
  GrowingSizes sizes() const {
    GrowingSizes sizes;
    sizes.least = 1;
    sizes.most = {8};
    sizes.offsets = {0};
    return sizes;
  }
  ir::Expr fixed(int64_t extent) { return pool.axis("f", pool.integer(extent)); }

  ir::ExprPool pool;
  ir::Expr length = length_symbol(pool);
  Axes axes{pool.axis("r", length), fixed(3)};
  GrowingExtents extents{pool, sizes()};
};

TEST_F(GrowingExtentsTest, AreExactAlongAnOutermostAxis) {
  extents.place({&axes});
  const Axes inside{axes[1], axes[0]}, other{fixed(2), fixed(4)}, none;
  EXPECT_TRUE(extents.is_exact({&axes}));
  EXPECT_TRUE(extents.is_exact({&none, &other, &axes}));
  EXPECT_FALSE(extents.grows_inside(axes));
  EXPECT_FALSE(extents.is_exact({&inside}));
  EXPECT_TRUE(extents.grows_inside(inside));
  EXPECT_FALSE(extents.is_exact({&other}));
}

// x = 4 a + b of an axis of 8 elements in memory: a run visits all of them.
TEST_F(GrowingExtentsTest, AreNotExactAlongPartsOfAnAxis) {
  extents.place({&axes});
  const Axes parts{fixed(2), fixed(4), axes[1]};
  EXPECT_FALSE(extents.is_exact({&parts}));
}

TEST_F(GrowingExtentsTest, AreExactWhereNothingGrows) {
  Axes fixed_axes{fixed(2), fixed(4)};
  extents.place({&fixed_axes});
  EXPECT_TRUE(extents.is_exact({}));
}

TEST_F(GrowingExtentsTest, CountTheOutermostAxisOfARun) {
  extents.place({&axes});
  EXPECT_EQ(extents.count(axes).at(5), 15);
  EXPECT_EQ(extents.count({axes[1], axes[0]}).at(5), 24);
  EXPECT_EQ(extents.count({}).at(5), 1);
}

}  // namespace
}  // namespace redfuser::cpu
