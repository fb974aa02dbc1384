// A bound on the memory that loading and compiling a model may take for tensors. (A session has a
// bound of its own: SessionOptions::memory_limit.)
#pragma once

#include <cstdint>
#include <memory>

namespace redfuser {

struct MemoryBudget;  // defined inside the library

// From its construction to its destruction, the tensors that its thread makes count against a
// number of bytes until they are freed, and new texts of theirs for good; one that does not fit is
// refused with UserError. Mapped files do not count. Limits nest: the newest of a thread counts
// alone.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes);  // 0: no limit
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // The largest number of bytes alive at once so far.
  int64_t peak_bytes() const;

  // What is left to the calling thread; INT64_MAX without a limit.
  static int64_t left();

 private:
  std::shared_ptr<MemoryBudget> budget_, outer_;
};

}  // namespace redfuser
