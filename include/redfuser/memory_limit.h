// A bound on the memory that a thread's work may take for tensors: loading and compiling a model,
// reading inputs, and, beside a session's own bound (SessionOptions::memory_limit), its runs.
#pragma once

#include <cstdint>
#include <memory>

namespace redfuser {

struct MemoryBudget;  // defined inside the library

// From its construction to its destruction, the tensors that its thread makes, and the working
// memory of the operators that it runs, count against a number of bytes until they are freed, and
// new texts of tensors for good; what does not fit is refused with UserError. Mapped files do not
// count. Limits nest: what counts against one counts against those around it.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes);  // 0: no limit, nor those around it
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
