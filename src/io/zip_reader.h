// Reading zip archives.
#pragma once

#include <memory>
#include <vector>

#include "io/byte_source.h"
#include "io/file.h"
#include "io/zip.h"

namespace redfuser::io {

// The archive's entries in the order of its directory. UserError for a file that is not a zip
// archive, is damaged, encrypted or split, or has two entries of one name.
std::vector<ZipEntry> read_zip_directory(const InputFile& file);

// The entry's bytes, inflated if need be. When the last byte is read, the checksum is checked.
std::unique_ptr<ByteSource> open_zip_entry(const InputFile& file, const ZipEntry& entry);

}  // namespace redfuser::io
