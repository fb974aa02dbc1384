// A file that appears under its name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files/temporary_path.h"

namespace redfuser {

// Writes to a temporary file beside the target. Until commit() the target is untouched; without it
// the temporary is removed. Symbolic links are followed, also to a file that does not exist yet. A
// target that is a device or a pipe is written in place, without a temporary. Every failure
// is a UserError that names the path.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  bool in_place() const { return !temporary_; }
  uint64_t position() const { return position_; }
  void write(const void* data, size_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }
  // Writes zeros up to a multiple of `alignment`.
  void align(size_t alignment);
  // Flushes all bytes to the file; commit() can then only fail to rename.
  void close();
  void commit();

 private:
  void create_temporary(const std::string& target);
  [[noreturn]] void fail(int error) const;

  std::string path_;    // as the caller wrote it
  std::string target_;  // with symbolic links resolved
  std::unique_ptr<TemporaryPath> temporary_;
  int descriptor_ = -1;
  uint64_t position_ = 0;
};

// Commits files that belong together: no signal ends the process between them. All bytes are in
// the files before the first one takes its name.
void commit_together(const std::vector<OutputFile*>& files);

// Writes a whole file of text.
void write_text(const std::string& path, const std::string& text);

}  // namespace redfuser
