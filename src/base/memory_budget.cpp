#include "base/memory_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "redfuser/memory_limit.h"

namespace redfuser {

struct MemoryBudget {
  MemoryBudget(int64_t bytes, std::shared_ptr<MemoryBudget> around)
      : limit(bytes), outer(std::move(around)) {}

  // Counts the bytes; false, with nothing counted, where they do not fit.
  bool takes(int64_t bytes) {
    int64_t before = live.load();
    do {
      if (bytes > limit - before) return false;
    } while (!live.compare_exchange_weak(before, before + bytes));
    int64_t highest = peak.load();
    while (highest < before + bytes && !peak.compare_exchange_weak(highest, before + bytes)) {
    }
    return true;
  }
  void release(int64_t bytes) { live -= bytes; }

  const int64_t limit;
  const std::shared_ptr<MemoryBudget> outer;  // null: none around it
  std::atomic<int64_t> live = 0, peak = 0;
};

namespace {

thread_local std::shared_ptr<MemoryBudget> current;

void release_up_to(MemoryBudget* from, const MemoryBudget* end, int64_t bytes) {
  for (; from != end; from = from->outer.get()) from->release(bytes);
}

}  // namespace

std::shared_ptr<MemoryBudget> current_budget() { return current; }

void take(MemoryBudget& budget, size_t bytes) {
  const auto wanted = static_cast<int64_t>(bytes);
  for (MemoryBudget* at = &budget; at != nullptr; at = at->outer.get()) {
    if (at->takes(wanted)) continue;
    release_up_to(&budget, at, wanted);
    throw MemoryLimitError(
        fmt::format("{} bytes are needed, with {} in use, above the memory limit of {}", wanted,
                    at->live.load(), at->limit));
  }
}

void give_back(MemoryBudget& budget, size_t bytes) {
  release_up_to(&budget, nullptr, static_cast<int64_t>(bytes));
}

BudgetScope::BudgetScope(std::shared_ptr<MemoryBudget> budget)
    : outer_(std::exchange(current, std::move(budget))) {}

BudgetScope::~BudgetScope() { current = std::move(outer_); }

MemoryLimit::MemoryLimit(int64_t bytes) : outer_(current) {
  const bool limited = bytes > 0;
  budget_ = std::make_shared<MemoryBudget>(limited ? bytes : std::numeric_limits<int64_t>::max(),
                                           limited ? current : nullptr);
  current = budget_;
}

MemoryLimit::~MemoryLimit() { current = std::move(outer_); }

int64_t MemoryLimit::peak_bytes() const { return budget_->peak; }

int64_t MemoryLimit::left() {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (MemoryBudget* at = current.get(); at != nullptr; at = at->outer.get()) {
    least = std::min(least, at->limit - at->live);
  }
  return least;
}

}  // namespace redfuser
