// Byte counts of MemoryLimit, charged by tensors and working memory.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "redfuser/error.h"

namespace redfuser {

// An allocation beyond the limit. Callers that know the node or file add its name.
class MemoryLimitError : public UserError {
 public:
  using UserError::UserError;
};

struct MemoryBudget;

// The budget of the calling thread; null without a limit.
std::shared_ptr<MemoryBudget> current_budget();

// Charges bytes to a budget and to those around it, from any thread. `take` throws MemoryLimitError
// beyond the limit.
void take(MemoryBudget& budget, size_t bytes);
void give_back(MemoryBudget& budget, size_t bytes);

// While it exists, the calling thread charges this budget. A worker charges the budget of the
// thread whose loop it runs.
class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<MemoryBudget> budget);
  ~BudgetScope();
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;

 private:
  std::shared_ptr<MemoryBudget> outer_;
};

// Charges the budget of the thread that constructs the container.
template <typename T>
class ChargedAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  ChargedAllocator() : budget_(current_budget()) {}
  template <typename U>
  ChargedAllocator(const ChargedAllocator<U>& other) : budget_(other.budget()) {}

  T* allocate(size_t count) {
    if (count > static_cast<size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
    if (budget_) take(*budget_, count * sizeof(T));
    void* memory = ::operator new(count * sizeof(T), std::nothrow);
    if (memory != nullptr) return static_cast<T*>(memory);
    if (budget_) give_back(*budget_, count * sizeof(T));
    throw std::bad_alloc();
  }
  void deallocate(T* memory, size_t count) {
    if (budget_) give_back(*budget_, count * sizeof(T));
    ::operator delete(memory);
  }

  const std::shared_ptr<MemoryBudget>& budget() const { return budget_; }
  template <typename U>
  bool operator==(const ChargedAllocator<U>& other) const {
    return budget_ == other.budget();
  }

 private:
  std::shared_ptr<MemoryBudget> budget_;
};

// Working memory that grows with the size of tensors.
template <typename T>
using ChargedVector = std::vector<T, ChargedAllocator<T>>;

}  // namespace redfuser
