// Memory that tensors take again.
#include "base/memory_pool.h"

#include <gtest/gtest.h>

#include "redfuser/tensor.h"

namespace redfuser {
namespace {

constexpr int64_t kFloats = 1 << 16;

TEST(MemoryPool, GivesBlocksOfAboutTheSameSizeAgain) {
  MemoryPool pool;
  const MemoryPool::Block block = pool.take(1000);
  pool.give(block);
  const MemoryPool::Block smaller = pool.take(900);
  EXPECT_EQ(smaller.data, block.data);
  EXPECT_EQ(smaller.bytes, 1000u);
  const MemoryPool::Block other = pool.take(900);
  EXPECT_NE(other.data, block.data);
  pool.give(smaller);
  const MemoryPool::Block half = pool.take(500);
  EXPECT_EQ(half.bytes, 500u);
  pool.give(half);
  pool.give(other);
}

TEST(MemoryPool, KeepsBlocksForOneRunWithoutUse) {
  MemoryPool pool;
  pool.begin_run();
  pool.give(pool.take(1000));
  pool.begin_run();
  const MemoryPool::Block used = pool.take(800);
  EXPECT_EQ(used.bytes, 1000u);
  pool.give(used);
  pool.begin_run();
  pool.begin_run();
  const MemoryPool::Block fresh = pool.take(800);
  EXPECT_EQ(fresh.bytes, 800u);
  pool.give(fresh);
}

// A caller holds the results of a run until the next one has given others.
TEST(MemoryPool, KeepsResultsThatAreHeldDuringTheNextRun) {
  MemoryPool pool;
  pool.begin_run();
  const MemoryPool::Block first = pool.take(1000);
  pool.begin_run();
  const MemoryPool::Block second = pool.take(1000);
  pool.give(first);
  pool.begin_run();
  const MemoryPool::Block third = pool.take(1000);
  EXPECT_EQ(third.data, first.data);
  pool.give(second);
  pool.give(third);
}

TEST(MemoryPool, KeepsNothingOnceClosed) {
  MemoryPool pool;
  const MemoryPool::Block out = pool.take(1000);
  pool.give(pool.take(800));
  pool.close();
  pool.give(out);
  const MemoryPool::Block fresh = pool.take(700);
  EXPECT_EQ(fresh.bytes, 700u);
  pool.give(fresh);
}

TEST(MemoryPool, TensorsOfAScopeTakeTurns) {
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(current_pool(), nullptr);
#else
  Tensor kept;
  {
    const PoolScope scope(std::make_shared<MemoryPool>());
    const void* data = Tensor(DType::Float32, {kFloats}).data();
    kept = Tensor(DType::Float32, {kFloats});
    EXPECT_EQ(kept.data(), data);
    EXPECT_NE(Tensor(DType::Float32, {kFloats}).data(), data);
    {
      const PoolScope none(nullptr);
      EXPECT_EQ(current_pool(), nullptr);
    }
    EXPECT_NE(current_pool(), nullptr);
  }
  EXPECT_EQ(current_pool(), nullptr);
  kept.as<float>()[kFloats - 1] = 1;  // outlives the scope, with its pool
  EXPECT_EQ(kept.as<float>()[kFloats - 1], 1);
#endif
}

}  // namespace
}  // namespace redfuser
