#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace redfuser {
namespace {

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (const int64_t tasks : {0, 1, 2, 3, 4, 7, 64, 1001}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      pool.parallel_for(tasks, [&](int64_t task, int worker) {
        ASSERT_GE(worker, 0);
        ASSERT_LT(worker, pool.size());
        ++runs[static_cast<size_t>(task)];
      });
      for (const auto& each : runs) EXPECT_EQ(each, 1) << threads << " threads, " << tasks;
    }
  }
}

// Tasks of a thread that does not come to them are those of others.
TEST(ThreadPool, TakesTheTasksOfASlowThread) {
  ThreadPool pool(2);
  if (pool.size() == 1) return;  // the system has refused a thread
  constexpr int64_t kTasks = 64;
  std::atomic<int64_t> done = 0;
  std::atomic<bool> waits = false;
  pool.parallel_for(kTasks, [&](int64_t, int) {
    // The first task ends when all others have.
    if (!waits.exchange(true)) {
      while (done < kTasks - 1) {
      }
    }
    ++done;
  });
  EXPECT_EQ(done, kTasks);
}

TEST(ThreadPool, RethrowsAndGoesOn) {
  ThreadPool pool(3);
  EXPECT_THROW(pool.parallel_for(100,
                                 [](int64_t task, int) {
                                   if (task == 41) throw std::runtime_error("task 41");
                                 }),
               std::runtime_error);
  std::atomic<int64_t> sum = 0;
  pool.parallel_for(100, [&](int64_t task, int) { sum += task; });
  EXPECT_EQ(sum, 4950);
}

}  // namespace
}  // namespace redfuser
