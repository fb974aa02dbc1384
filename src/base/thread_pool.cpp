#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/memory_budget.h"

namespace redfuser {
namespace {

// About 150 microseconds: longer than the gap between two steps of a model that several threads
// share, shorter than a scheduler's time slice.
constexpr int kSpins = 8000;
// Microseconds that are lost until threads are awake: the caller's system call and the scheduler.
constexpr double kWake = 20;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// condition.wait(lock, ready), which the C++ library has had as another function since
// GLIBCXX_3.4.30, by one that older systems have too.
template <typename Ready>
void sleep_until(Ready ready, std::condition_variable& condition,
                 std::unique_lock<std::mutex>& lock) {
  while (!condition.wait_for(lock, std::chrono::hours(24), ready)) {
  }
}

}  // namespace

// A job is open while the calling thread hands out its tasks. Workers join an open job and leave
// it; the caller closes it and waits only for those that have joined, so a worker that wakes late
// costs nothing.
struct ThreadPool::Impl {
  static constexpr uint64_t kOpen = uint64_t{1} << 31;
  static constexpr uint64_t kActive = kOpen - 1;

  // epoch (32 bits), open (1 bit), joined workers (31 bits).
  std::atomic<uint64_t> state{0};
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::atomic<bool> caller_sleeps{false};
  // The tasks of each thread, which others take from once they have done their own: data that a
  // thread wrote in the loop before mostly lie in its own cache.
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  std::vector<Range> ranges;
  double missed = 0;  // microseconds that others would have saved while they slept
  const std::function<void(int64_t, int)>* body = nullptr;
  std::shared_ptr<MemoryBudget> budget;  // the caller's

  std::mutex mutex;
  std::condition_variable wake, done;
  std::exception_ptr error;
  std::vector<std::thread> threads;

  void work(int worker) {
    const size_t count = ranges.size();
    for (size_t i = 0; i < count; ++i) work(worker, ranges[(worker + i) % count]);
  }

  void work(int worker, Range& range) {
    while (range.next.load() < range.end) {
      const int64_t task = range.next.fetch_add(1);
      if (task >= range.end) return;
      try {
        (*body)(task, worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        for (Range& each : ranges) each.next.store(each.end);
      }
    }
  }

  bool is_new(uint64_t current, uint32_t seen) const {
    return (current & kOpen) != 0 && static_cast<uint32_t>(current >> 32) != seen;
  }

  void wait_for_job(uint32_t seen) {
    auto ready = [&] { return stop.load() || is_new(state.load(), seen); };
    for (int spin = 0; spin < kSpins; ++spin) {
      if (ready()) return;
      pause();
    }
    std::unique_lock lock(mutex);
    ++sleepers;
    sleep_until(ready, wake, lock);
    --sleepers;
  }

  void worker_loop(int worker) {
    uint32_t seen = 0;
    while (true) {
      wait_for_job(seen);
      if (stop.load()) return;
      uint64_t current = state.load();
      if (!is_new(current, seen) || !state.compare_exchange_strong(current, current + 1)) continue;
      seen = static_cast<uint32_t>(current >> 32);
      {
        const BudgetScope scope(budget);
        work(worker);
      }
      uint64_t left = state.fetch_sub(1) - 1;
      if ((left & (kOpen | kActive)) == 0 && caller_sleeps.load()) {
        std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }

  // Sleeping threads are woken once they would have saved as much as waking them costs: at most
  // twice the least loss, whatever comes next.
  bool is_worth_waking(double saved) {
    missed = sleepers.load() > 0 ? missed + saved : kWake;
    if (missed < kWake) return false;
    missed = 0;
    return true;
  }

  void open(int64_t count, const std::function<void(int64_t, int)>& function) {
    const auto parts = static_cast<int64_t>(ranges.size());
    for (int64_t i = 0; i < parts; ++i) {
      ranges[i].next.store(count * i / parts);
      ranges[i].end = count * (i + 1) / parts;
    }
    body = &function;
    budget = current_budget();
    error = nullptr;
    uint64_t epoch = static_cast<uint32_t>((state.load() >> 32) + 1);
    state.store(epoch << 32 | kOpen);
    if (sleepers.load() > 0) {
      std::lock_guard lock(mutex);
      wake.notify_all();
    }
  }

  void close() {
    state.fetch_and(~kOpen);
    auto finished = [&] { return (state.load() & kActive) == 0; };
    for (int spin = 0; spin < kSpins; ++spin) {
      if (finished()) return;
      pause();
    }
    std::unique_lock lock(mutex);
    caller_sleeps.store(true);
    sleep_until(finished, done, lock);
    caller_sleeps.store(false);
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  int count = threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency());
  // The system refuses more threads: the existing ones do the work.
  try {
    for (int worker = 1; worker < count; ++worker) {
      impl_->threads.emplace_back([impl = impl_.get(), worker] { impl->worker_loop(worker); });
    }
  } catch (const std::system_error&) {
  }
  std::vector<Impl::Range>(impl_->threads.size() + 1).swap(impl_->ranges);
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stop.store(true);
    impl_->wake.notify_all();
  }
  for (std::thread& thread : impl_->threads) thread.join();
}

int ThreadPool::size() const { return static_cast<int>(impl_->threads.size()) + 1; }

void ThreadPool::parallel_for(int64_t tasks, const std::function<void(int64_t, int)>& body,
                              double saved) {
  if (tasks <= 0) return;
  if (tasks == 1 || impl_->threads.empty() || !impl_->is_worth_waking(saved)) {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  impl_->open(tasks, body);
  impl_->work(0);
  impl_->close();
  impl_->budget = nullptr;
  if (impl_->error) std::rethrow_exception(std::exchange(impl_->error, nullptr));
}

}  // namespace redfuser
