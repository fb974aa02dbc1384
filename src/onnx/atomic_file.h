// A file that appears under its name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace redfuser {

// Writes to a temporary file beside the target. Until commit() the target is untouched; without it
// the temporary is removed. Every failure is a UserError that names the target.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  // Writes zeros up to a multiple of `alignment`.
  void align(size_t alignment);
  uint64_t offset() const { return offset_; }
  // Makes sure that the bytes have reached the file; commit() can then only fail to rename.
  void close();
  void commit();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_, temporary_;
  int fd_ = -1;
  uint64_t offset_ = 0;
};

}  // namespace redfuser
