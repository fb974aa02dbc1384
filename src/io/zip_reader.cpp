#include "io/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"

namespace redfuser::io {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56;
constexpr size_t kEntrySize = 46, kLocalSize = 30;
constexpr uint64_t kLargestDirectory = uint64_t{1} << 28;
// Deflate cannot expand further (zlib's technical details give 1032:1).
constexpr uint64_t kLargestRatio = 1032;

template <typename T>
T load(const uint8_t* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(T{from[i]} << (8 * i));
  return value;
}

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};

[[noreturn]] void damaged(const InputFile& file, const char* what) {
  user_error("\"{}\" is no usable zip archive (.npz): {}", file.path(), what);
}

Directory read_end64(const InputFile& file, uint64_t locator_offset) {
  std::array<uint8_t, kLocatorSize> locator;
  file.read(locator_offset, locator.data(), locator.size());
  if (load<uint32_t>(locator.data()) != kLocator64) damaged(file, "the zip64 locator is missing");
  const uint64_t offset = load<uint64_t>(locator.data() + 8);
  std::array<uint8_t, kEnd64Size> end;
  if (offset > locator_offset) damaged(file, "the zip64 directory end lies outside");
  file.read(offset, end.data(), end.size());
  if (load<uint32_t>(end.data()) != kEnd64) damaged(file, "the zip64 directory end is missing");
  return {load<uint64_t>(end.data() + 48), load<uint64_t>(end.data() + 40),
          load<uint64_t>(end.data() + 32)};
}

Directory find_directory(const InputFile& file) {
  if (file.size() < kEndSize) damaged(file, "it is too short");
  const size_t tail = static_cast<size_t>(std::min<uint64_t>(file.size(), kEndSize + 65535));
  std::vector<uint8_t> bytes(tail);
  file.read(file.size() - tail, bytes.data(), tail);
  size_t at = tail - kEndSize;
  while (load<uint32_t>(&bytes[at]) != kEnd) {
    if (at == 0) damaged(file, "the end of its directory is missing");
    --at;
  }
  const uint8_t* end = &bytes[at];
  if (load<uint16_t>(end + 4) != load<uint16_t>(end + 6)) damaged(file, "it is split");
  Directory directory{load<uint32_t>(end + 16), load<uint32_t>(end + 12), load<uint16_t>(end + 10)};
  const uint64_t end_offset = file.size() - tail + at;
  const bool overflowed = directory.offset == UINT32_MAX || directory.size == UINT32_MAX ||
                          directory.count == UINT16_MAX;
  if (overflowed && end_offset >= kLocatorSize) {
    directory = read_end64(file, end_offset - kLocatorSize);
  }
  return directory;
}

// Sizes of 32 set bits stand in the zip64 extra field, in this order.
void apply_zip64(const InputFile& file, const uint8_t* extra, size_t length, ZipEntry& entry) {
  while (length >= 4) {
    const uint16_t kind = load<uint16_t>(extra);
    const size_t size = load<uint16_t>(extra + 2);
    if (size > length - 4) damaged(file, "an extra field is too long");
    if (kind == 1) {
      size_t at = 0;
      for (uint64_t* field : {&entry.size, &entry.compressed_size, &entry.header_offset}) {
        if (*field != UINT32_MAX) continue;
        if (at + 8 > size) damaged(file, "a zip64 field is too short");
        *field = load<uint64_t>(extra + 4 + at);
        at += 8;
      }
    }
    extra += 4 + size;
    length -= 4 + size;
  }
}

void check_entry(const InputFile& file, const ZipEntry& entry, uint16_t flags) {
  if (flags & 1) user_error("\"{}\" entry \"{}\" is encrypted", file.path(), entry.name);
  if (entry.method != 0 && entry.method != 8) {
    user_error(
        "\"{}\" entry \"{}\" has compression method {}; only stored (0) and deflated (8) "
        "are read",
        file.path(), entry.name, entry.method);
  }
  if (entry.compressed_size > file.size() || entry.header_offset > file.size()) {
    damaged(file, "an entry lies outside the file");
  }
  const bool believable = entry.method == 0 ? entry.size == entry.compressed_size
                                            : entry.size / kLargestRatio <= entry.compressed_size;
  if (!believable) damaged(file, "an entry's size cannot be true");
}

// Inflates while reading; the checksum covers the inflated bytes.
class EntrySource : public ByteSource {
 public:
  EntrySource(const InputFile& file, const ZipEntry& entry, uint64_t data_offset)
      : file_(file),
        entry_(entry),
        source_(file, data_offset, entry.compressed_size),
        remaining_(entry.size) {
    if (entry.method == 8 && inflateInit2(&stream_, -MAX_WBITS) != Z_OK) {
      internal_error("zlib cannot start");
    }
  }
  ~EntrySource() override {
    if (entry_.method == 8) inflateEnd(&stream_);
  }

  uint64_t remaining() const override { return remaining_; }

  void read(void* to, size_t bytes) override {
    if (bytes > remaining_) fail("it ends early");
    if (entry_.method == 0) {
      source_.read(to, bytes);
    } else {
      inflate_into(static_cast<uint8_t*>(to), bytes);
    }
    remaining_ -= bytes;
    check_sum(static_cast<const uint8_t*>(to), bytes);
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    user_error("\"{}\" entry \"{}\" is damaged: {}", file_.path(), entry_.name, what);
  }

  void inflate_into(uint8_t* to, size_t bytes) {
    while (bytes > 0) {
      if (stream_.avail_in == 0) {
        const size_t chunk =
            static_cast<size_t>(std::min<uint64_t>(input_.size(), source_.remaining()));
        if (chunk == 0) fail("its compressed data end early");
        source_.read(input_.data(), chunk);
        stream_.next_in = input_.data();
        stream_.avail_in = static_cast<uInt>(chunk);
      }
      const uInt wanted =
          static_cast<uInt>(std::min<size_t>(bytes, std::numeric_limits<uInt>::max()));
      stream_.next_out = to;
      stream_.avail_out = wanted;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const size_t done = wanted - stream_.avail_out;
      to += done;
      bytes -= done;
      if (status == Z_STREAM_END && bytes > 0) fail("its compressed data end early");
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        fail("its compressed data are invalid");
      }
    }
  }

  void check_sum(const uint8_t* data, size_t bytes) {
    while (bytes > 0) {
      const size_t chunk = std::min<size_t>(bytes, size_t{1} << 30);
      sum_ = crc32(sum_, data, static_cast<uInt>(chunk));
      data += chunk;
      bytes -= chunk;
    }
    if (remaining_ == 0 && static_cast<uint32_t>(sum_) != entry_.crc) fail("its checksum is wrong");
  }

  const InputFile& file_;
  ZipEntry entry_;
  FileSource source_;
  uint64_t remaining_;
  z_stream stream_{};
  uLong sum_ = 0;
  std::array<uint8_t, 1 << 16> input_;
};

}  // namespace

std::vector<ZipEntry> read_zip_directory(const InputFile& file) {
  const Directory directory = find_directory(file);
  if (directory.size > kLargestDirectory || directory.offset > file.size() ||
      directory.size > file.size() - directory.offset) {
    damaged(file, "its directory lies outside the file");
  }
  std::vector<uint8_t> bytes(directory.size);
  file.read(directory.offset, bytes.data(), bytes.size());
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (bytes.size() - at < kEntrySize) damaged(file, "its directory is truncated");
    const uint8_t* head = &bytes[at];
    if (load<uint32_t>(head) != kDirectoryEntry) damaged(file, "its directory is damaged");
    const size_t name = load<uint16_t>(head + 28), extra = load<uint16_t>(head + 30);
    const size_t comment = load<uint16_t>(head + 32);
    if (bytes.size() - at - kEntrySize < name + extra + comment) {
      damaged(file, "its directory is truncated");
    }
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(head + kEntrySize), name);
    entry.method = load<uint16_t>(head + 10);
    entry.crc = load<uint32_t>(head + 16);
    entry.compressed_size = load<uint32_t>(head + 20);
    entry.size = load<uint32_t>(head + 24);
    entry.header_offset = load<uint32_t>(head + 42);
    apply_zip64(file, head + kEntrySize + name, extra, entry);
    check_entry(file, entry, load<uint16_t>(head + 8));
    if (!names.insert(entry.name).second) {
      user_error("\"{}\" has the entry \"{}\" twice", file.path(), entry.name);
    }
    entries.push_back(std::move(entry));
    at += kEntrySize + name + extra + comment;
  }
  return entries;
}

std::unique_ptr<ByteSource> open_zip_entry(const InputFile& file, const ZipEntry& entry) {
  std::array<uint8_t, kLocalSize> head;
  file.read(entry.header_offset, head.data(), head.size());
  if (load<uint32_t>(head.data()) != kLocalHeader) damaged(file, "an entry's header is missing");
  const uint64_t offset = entry.header_offset + kLocalSize + load<uint16_t>(head.data() + 26) +
                          load<uint16_t>(head.data() + 28);
  if (offset > file.size() || entry.compressed_size > file.size() - offset) {
    damaged(file, "an entry lies outside the file");
  }
  return std::make_unique<EntrySource>(file, entry, offset);
}

}  // namespace redfuser::io
