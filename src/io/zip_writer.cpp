#include "io/zip_writer.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace redfuser::io {
namespace {

constexpr uint16_t kVersionZip64 = 45;
constexpr uint16_t kUtf8Names = 1 << 11;
constexpr uint16_t kFirstDate =
    (1 << 5) | 1;  // 1 January 1980, so that equal data give equal bytes

template <typename T>
void put(std::string& bytes, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff));
  }
}

uint32_t checksum(const std::string& head, const void* data, size_t bytes) {
  uLong sum = crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
  const Bytef* cursor = static_cast<const Bytef*>(data);
  while (bytes > 0) {
    const size_t chunk = std::min<size_t>(bytes, size_t{1} << 30);
    sum = crc32(sum, cursor, static_cast<uInt>(chunk));
    cursor += chunk;
    bytes -= chunk;
  }
  return static_cast<uint32_t>(sum);
}

// The fields that a local header and a directory entry share. Sizes are always in zip64 form.
void put_common(std::string& bytes, const ZipEntry& entry, uint16_t extra_size) {
  put<uint16_t>(bytes, kVersionZip64);
  put<uint16_t>(bytes, kUtf8Names);
  put<uint16_t>(bytes, 0);  // stored
  put<uint16_t>(bytes, 0);  // midnight
  put<uint16_t>(bytes, kFirstDate);
  put<uint32_t>(bytes, entry.crc);
  put<uint32_t>(bytes, UINT32_MAX);
  put<uint32_t>(bytes, UINT32_MAX);
  put<uint16_t>(bytes, static_cast<uint16_t>(entry.name.size()));
  put<uint16_t>(bytes, extra_size);
}

}  // namespace

void ZipWriter::add(const std::string& name, const std::string& head, const void* data,
                    size_t bytes) {
  if (name.size() > 65535) user_error("the tensor name \"{}...\" is too long", name.substr(0, 64));
  ZipEntry entry;
  entry.name = name;
  entry.crc = checksum(head, data, bytes);
  entry.size = entry.compressed_size = head.size() + bytes;
  entry.header_offset = file_.position();
  std::string header;
  put<uint32_t>(header, 0x04034b50);
  put_common(header, entry, 20);
  header += name;
  put<uint16_t>(header, 1);
  put<uint16_t>(header, 16);
  put<uint64_t>(header, entry.size);
  put<uint64_t>(header, entry.compressed_size);
  file_.write(header);
  file_.write(head);
  file_.write(data, bytes);
  entries_.push_back(std::move(entry));
}

void ZipWriter::finish() {
  const uint64_t start = file_.position();
  std::string directory;
  for (const ZipEntry& entry : entries_) {
    put<uint32_t>(directory, 0x02014b50);
    put<uint16_t>(directory, kVersionZip64);
    put_common(directory, entry, 28);
    put<uint16_t>(directory, 0);  // no comment
    put<uint16_t>(directory, 0);  // disk
    put<uint16_t>(directory, 0);  // attributes
    put<uint32_t>(directory, 0);
    put<uint32_t>(directory, UINT32_MAX);
    directory += entry.name;
    put<uint16_t>(directory, 1);
    put<uint16_t>(directory, 24);
    put<uint64_t>(directory, entry.size);
    put<uint64_t>(directory, entry.compressed_size);
    put<uint64_t>(directory, entry.header_offset);
  }
  const uint64_t size = directory.size(), count = entries_.size();
  put<uint32_t>(directory, 0x06064b50);
  put<uint64_t>(directory, 44);
  put<uint16_t>(directory, kVersionZip64);
  put<uint16_t>(directory, kVersionZip64);
  put<uint32_t>(directory, 0);
  put<uint32_t>(directory, 0);
  put<uint64_t>(directory, count);
  put<uint64_t>(directory, count);
  put<uint64_t>(directory, size);
  put<uint64_t>(directory, start);
  put<uint32_t>(directory, 0x07064b50);
  put<uint32_t>(directory, 0);
  put<uint64_t>(directory, start + size);
  put<uint32_t>(directory, 1);
  put<uint32_t>(directory, 0x06054b50);
  put<uint16_t>(directory, 0);
  put<uint16_t>(directory, 0);
  put<uint16_t>(directory, UINT16_MAX);
  put<uint16_t>(directory, UINT16_MAX);
  put<uint32_t>(directory, UINT32_MAX);
  put<uint32_t>(directory, UINT32_MAX);
  put<uint16_t>(directory, 0);
  file_.write(directory);
  file_.commit();
}

}  // namespace redfuser::io
