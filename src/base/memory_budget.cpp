#include "base/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "redfuser/memory_limit.h"

namespace redfuser {

struct MemoryBudget {
  explicit MemoryBudget(int64_t bytes) : limit(bytes) {}
  const int64_t limit;
  std::mutex mutex;
  int64_t live = 0, peak = 0;
};

namespace {

thread_local std::shared_ptr<MemoryBudget> current;

}  // namespace

std::shared_ptr<MemoryBudget> current_budget() { return current; }

void take(MemoryBudget& budget, size_t bytes) {
  const std::lock_guard lock(budget.mutex);
  const auto wanted = static_cast<int64_t>(bytes);
  if (wanted > budget.limit - budget.live) {
    throw MemoryLimitError(
        fmt::format("{} bytes are needed, with {} in use, above the memory limit of {}", wanted,
                    budget.live, budget.limit));
  }
  budget.live += wanted;
  budget.peak = std::max(budget.peak, budget.live);
}

void give_back(MemoryBudget& budget, size_t bytes) {
  const std::lock_guard lock(budget.mutex);
  budget.live -= static_cast<int64_t>(bytes);
}

MemoryLimit::MemoryLimit(int64_t bytes) : outer_(current) {
  budget_ = std::make_shared<MemoryBudget>(bytes > 0 ? bytes : std::numeric_limits<int64_t>::max());
  current = budget_;
}

MemoryLimit::~MemoryLimit() { current = std::move(outer_); }

int64_t MemoryLimit::peak_bytes() const {
  const std::lock_guard lock(budget_->mutex);
  return budget_->peak;
}

int64_t MemoryLimit::left() {
  if (!current) return std::numeric_limits<int64_t>::max();
  const std::lock_guard lock(current->mutex);
  return current->limit - current->live;
}

}  // namespace redfuser
