// Zip archives, as NumPy's .npz files use them: stored and deflated entries, zip64.
// Format: PKWARE APPNOTE.TXT 6.3.10.
#pragma once

#include <cstdint>
#include <string>

namespace redfuser::io {

struct ZipEntry {
  std::string name;
  uint16_t method = 0;  // 0 stored, 8 deflated
  uint32_t crc = 0;
  uint64_t compressed_size = 0, size = 0;
  uint64_t header_offset = 0;  // of the local header
};

}  // namespace redfuser::io
