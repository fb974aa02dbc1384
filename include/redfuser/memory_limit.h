// A bound on the memory that a thread's work may take for tensors: loading and compiling a model,
// reading inputs, and, beside a session's own bound (SessionOptions::memory_limit), its runs.
#pragma once

#include <cstdint>
#include <memory>

namespace redfuser {

struct MemoryBudget;  // defined inside the library

// While it exists, the tensors that its thread makes and the working memory of the operators that
// the thread runs count against a number of bytes until they are freed; new strings of tensors
// count until the end of the process. An allocation beyond the limit throws UserError. Mapped files
// do not count. Limits nest: an allocation counts against all limits around it.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes);  // 0: no limit; those around it do not apply either
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // The largest number of bytes alive at once so far.
  int64_t peak_bytes() const;

  // The bytes that the calling thread may still allocate; INT64_MAX without a limit.
  static int64_t left();

 private:
  std::shared_ptr<MemoryBudget> budget_, outer_;
};

}  // namespace redfuser
