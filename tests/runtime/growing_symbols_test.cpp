// Sizes that grow from run to run.
#include "runtime/program/sizes/growing_symbols.h"

#include <gtest/gtest.h>

namespace redfuser::runtime {
namespace {

using Sizes = std::vector<int64_t>;

GrowingSymbols after(const std::vector<Sizes>& runs) {
  GrowingSymbols symbols;
  for (const Sizes& run : runs) symbols.note(run);
  return symbols;
}

TEST(GrowingSymbols, AreThoseThatChangeTogether) {
  // Batch, positions before, positions after.
  const GrowingSymbols symbols = after({{1, 4, 5}, {1, 5, 6}, {1, 6, 7}, {1, 9, 10}});
  EXPECT_TRUE(symbols.steady());
  EXPECT_EQ(symbols.grows(), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(symbols.greatest({2, 17, 18}), (Sizes{2, 32, 33}));
  EXPECT_EQ(symbols.greatest({2, 16, 17}), (Sizes{2, 16, 17}));
  EXPECT_EQ(symbols.greatest({2, 3, 4}), (Sizes{2, 16, 17}));
}

TEST(GrowingSymbols, AreNoneUntilRunsAreSteady) {
  const std::vector<std::vector<Sizes>> others = {
      {},
      {{1, 4, 5}},
      {{1, 4, 5}, {1, 5, 6}, {1, 6, 7}},
      {{1, 4, 5}, {1, 5, 7}, {1, 6, 9}, {1, 7, 11}, {1, 8, 13}},  // by other numbers
      {{1, 4, 5}, {1, 5, 6}, {2, 5, 6}, {2, 6, 7}, {3, 6, 7}},    // in turns
      {{1, 4, 5}, {1, 4, 5}, {1, 4, 5}, {1, 4, 5}, {1, 4, 5}},
  };
  for (const auto& runs : others) {
    EXPECT_FALSE(after(runs).steady());
    EXPECT_FALSE(after(runs).greatest({1, 4, 5}));
  }
}

// A new sequence begins with another prompt, and its tokens grow as those before.
TEST(GrowingSymbols, AreKeptWhileOtherRunsAreBetween) {
  GrowingSymbols symbols = after({{1, 4}, {1, 5}, {1, 6}, {1, 7}});
  symbols.note({12, 0});
  EXPECT_FALSE(symbols.steady());
  EXPECT_EQ(symbols.greatest({1, 12}), (Sizes{1, 16}));
}

// Batch, mask, positions before. Where the mask grows as well, that is learned.
TEST(GrowingSymbols, AreThoseOfMemoryWithRoomUntilMoreIsLearned) {
  const std::vector<bool> positions = {false, false, true};
  GrowingSymbols symbols;
  symbols.note({1, 5, 4}, positions);
  EXPECT_TRUE(symbols.steady());
  EXPECT_EQ(symbols.greatest({1, 5, 4}), (Sizes{1, 5, 16}));
  for (int64_t run = 1; run < 4; ++run) symbols.note({1, 5 + run, 4 + run}, positions);
  EXPECT_EQ(symbols.greatest({1, 8, 7}), (Sizes{1, 16, 15}));
  symbols.note({1, 9, 0});
  EXPECT_FALSE(symbols.steady());
}

TEST(GrowingSymbols, TooLongRunsHaveNoClass) {
  const GrowingSymbols symbols = after({{1}, {2}, {3}, {4}});
  EXPECT_FALSE(symbols.greatest({int64_t{1} << 62}));
}

}  // namespace
}  // namespace redfuser::runtime
