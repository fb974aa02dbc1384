// Files read in ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace redfuser::io {

// A file open for reading. Throws UserError, naming the path, when it cannot be read.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Reads exactly [offset, offset + bytes); UserError if the file is shorter.
  void read(uint64_t offset, void* to, size_t bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// The whole file as text; UserError above `limit` bytes.
std::string read_text(const std::string& path, uint64_t limit = uint64_t{1} << 30);

}  // namespace redfuser::io
