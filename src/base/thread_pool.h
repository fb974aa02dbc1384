// A fixed set of threads for data-parallel loops.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>

namespace redfuser {

class ThreadPool {
 public:
  // `threads` <= 0 means one per core; fewer if the system refuses to create more. The calling
  // thread works too.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int size() const;
  // Runs body(task, worker) for every task in [0, tasks), worker in [0, size()): each thread takes
  // those of a part of its own first, then those of others. Returns when all are done; rethrows
  // the first exception. Not reentrant: a body must not call it. `saved`: microseconds that several
  // threads save. Those that sleep are not woken for less than waking them takes.
  void parallel_for(int64_t tasks, const std::function<void(int64_t task, int worker)>& body,
                    double saved = HUGE_VAL);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace redfuser
