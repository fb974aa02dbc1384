// Bytes of a fuzzer as a model file, and the mutators of model targets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace redfuser {

// A file in memory for as long as the object lives.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const;

 private:
  int descriptor_;
};

}  // namespace redfuser
