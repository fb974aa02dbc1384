// A stream of bytes of known length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/file.h"

namespace redfuser::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // The number of unread bytes.
  virtual uint64_t remaining() const = 0;
  // Reads exactly `bytes` (at most remaining()); UserError when the source is damaged.
  virtual void read(void* to, size_t bytes) = 0;
};

// A range of a file.
class FileSource : public ByteSource {
 public:
  FileSource(const InputFile& file, uint64_t offset, uint64_t size)
      : file_(file), offset_(offset), remaining_(size) {}
  uint64_t remaining() const override { return remaining_; }
  void read(void* to, size_t bytes) override {
    file_.read(offset_, to, bytes);
    offset_ += bytes;
    remaining_ -= bytes;
  }

 private:
  const InputFile& file_;
  uint64_t offset_, remaining_;
};

}  // namespace redfuser::io
