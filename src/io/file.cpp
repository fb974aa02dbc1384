#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace redfuser::io {
namespace {

// Linux transfers at most about 2 GiB a call.
constexpr size_t kLargestTransfer = size_t{1} << 30;

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) user_error("cannot open \"{}\": {}", path, std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor_);
    user_error("\"{}\" is not a regular file", path);
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::read(uint64_t offset, void* to, size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) {
    user_error("\"{}\" is truncated: it has {} bytes, but {} are needed at offset {}", path_, size_,
               bytes, offset);
  }
  char* cursor = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got =
        pread(descriptor_, cursor, std::min(bytes, kLargestTransfer), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) user_error("cannot read \"{}\": {}", path_, std::strerror(errno));
    if (got == 0) user_error("\"{}\" ended while it was read", path_);
    cursor += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
}

std::string read_text(const std::string& path, uint64_t limit) {
  const InputFile file(path);
  if (file.size() > limit) {
    user_error("\"{}\" has {} bytes, more than the {} that are read as text", path, file.size(),
               limit);
  }
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  return text;
}

}  // namespace redfuser::io
