// Writing zip archives.
#pragma once

#include <string>
#include <vector>

#include "base/files/output_file.h"
#include "io/zip.h"

namespace redfuser::io {

// Writes an archive of stored entries with fixed time stamps.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : file_(path) {}
  // The entry's bytes are `head` followed by `bytes` bytes at `data`.
  void add(const std::string& name, const std::string& head, const void* data, size_t bytes);
  // Writes the directory and takes the file's name.
  void finish();

 private:
  OutputFile file_;
  std::vector<ZipEntry> entries_;
};

}  // namespace redfuser::io
