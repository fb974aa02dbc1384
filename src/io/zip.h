// Zip archives, as NumPy's .npz files use them: stored and deflated entries, zip64.
// Format: PKWARE APPNOTE.TXT 6.3.10.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "io/byte_source.h"
#include "io/file.h"

namespace redfuser::io {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;  // 0 stored, 8 deflated
  uint32_t crc = 0;
  uint64_t compressed_size = 0, size = 0;
  uint64_t header_offset = 0;  // of the local header
};

// The archive's entries in the order of its directory. UserError for what is no zip archive, is
// damaged, encrypted, split, or names an entry twice.
std::vector<ZipEntry> read_zip_directory(const InputFile& file);

// The entry's bytes, inflated if need be. When the last byte is read, the checksum is checked.
std::unique_ptr<ByteSource> open_zip_entry(const InputFile& file, const ZipEntry& entry);

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
