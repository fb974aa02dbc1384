// The union of ranges of tiles that kernels count through, on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#define __device__
#define __forceinline__ inline
using std::max;
#include "device/key_tiles.cuh"

namespace redfuser {
namespace {

template <int N>
void expect_union(std::mt19937& random) {
  int begin[N], end[N];
  std::set<int> expected;
  for (int k = 0; k < N; ++k) {
    begin[k] = static_cast<int>(random() % 12);
    end[k] = static_cast<int>(random() % 12);
    for (int tile = begin[k]; tile < end[k]; ++tile) expected.insert(tile);
  }
  const KeyTiles<N> tiles(begin, end);
  ASSERT_EQ(tiles.count(), static_cast<int>(expected.size()));
  int i = 0;
  for (const int tile : expected) EXPECT_EQ(tiles(i++), tile);
}

TEST(KeyTiles, AreTheUnionInOrder) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int draw = 0; draw < 2000; ++draw) {
    SCOPED_TRACE(draw);
    expect_union<2>(random);
    expect_union<3>(random);
    expect_union<4>(random);
  }
}

}  // namespace
}  // namespace redfuser
