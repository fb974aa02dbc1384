// Files read in ranges and replaced whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace redfuser {

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

// Writes beside `path` and takes its name at commit(); without commit nothing is left behind. What
// is no regular file (a device, a pipe) is written in place.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  uint64_t position() const { return position_; }
  void write(const void* data, size_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }
  void commit();

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
  uint64_t position_ = 0;
};

// The whole file as text; UserError above `limit` bytes.
std::string read_text(const std::string& path, uint64_t limit = uint64_t{1} << 30);
void write_text(const std::string& path, const std::string& text);

}  // namespace redfuser
