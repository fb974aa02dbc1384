// Memory that tensors take again.
#include "base/memory_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

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

TEST(MemoryPool, RunsAfterTheFirstShareASlab) {
  MemoryPool pool(MemoryPool::Layout::Slab);
  const auto run = [&] {
    pool.begin_run();
    MemoryPool::Block x = pool.take(1000), y = pool.take(3000);
    pool.give(x);
    MemoryPool::Block z = pool.take(900);
    std::vector<char*> at;
    for (const auto* block : {&x, &y, &z}) at.push_back(static_cast<char*>(block->data));
    pool.give(y);
    pool.give(z);
    return at;
  };
  run();
  for (int i = 0; i < 3; ++i) {
    const std::vector<char*> at = run();
    EXPECT_EQ(at[1] - at[0], 1024);
    EXPECT_EQ(at[2], at[0]);
  }
}

// A slab whose pieces are held stays, and the one after the next is not made before.
TEST(MemoryPool, PiecesOutliveTheirSlab) {
  MemoryPool pool(MemoryPool::Layout::Slab);
  pool.give(pool.take(4096));
  pool.begin_run();
  const MemoryPool::Block held = pool.take(4096);
  EXPECT_NE(held.slab, nullptr);
  for (size_t bytes : {size_t{1} << 14, size_t{1} << 16, size_t{1} << 18}) {
    const MemoryPool::Block piece = pool.take(bytes);
    std::memset(piece.data, 1, bytes);
    pool.give(piece);
    pool.begin_run();
  }
  std::memset(held.data, 2, 4096);
  pool.close();
  EXPECT_EQ(static_cast<char*>(held.data)[4095], 2);
  pool.give(held);
}

TEST(MemoryPool, PiecesAreApart) {
  std::mt19937 random(7);
  MemoryPool pool(MemoryPool::Layout::Slab);
  std::vector<MemoryPool::Block> blocks;
  for (int step = 0; step < 4000; ++step) {
    if (step % 100 == 99) pool.begin_run();
    if (blocks.size() > random() % 12) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      pool.give(blocks.back());
      blocks.pop_back();
      continue;
    }
    MemoryPool::Block block = pool.take(1 + random() % 5000);
    auto* begin = static_cast<char*>(block.data);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % kTensorAlignment, 0u);
    for (const MemoryPool::Block& other : blocks) {
      auto* its = static_cast<char*>(other.data);
      EXPECT_TRUE(begin + block.bytes <= its || its + other.bytes <= begin);
    }
    blocks.push_back(std::move(block));
  }
  for (MemoryPool::Block& block : blocks) pool.give(std::move(block));
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
