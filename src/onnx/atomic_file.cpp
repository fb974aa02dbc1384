#include "onnx/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

// Linux writes at most this much at once.
constexpr size_t kMaxWrite = size_t{1} << 30;

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  std::error_code error;
  // Replacing a link would leave what it points to as it was.
  const fs::path target =
      fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : fs::path(path);
  if (fs::is_directory(target, error)) user_error("{}: cannot be written: is a directory", path);
  if (fs::exists(target, error) && !fs::is_regular_file(target, error)) {
    user_error("{}: cannot be written: is not a regular file", path);
  }
  path_ = target.string();
  temporary_ = fmt::format("{}.{}.tmp", path_, ::getpid());
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) {
    const int reason = errno;
    temporary_.clear();
    fail(reason);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(int error) const {
  user_error("{}: cannot be written: {}", path_, std::strerror(error));
}

void AtomicFile::write(const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size != 0) {
    const ssize_t written = ::write(fd_, bytes, std::min(size, kMaxWrite));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes += written;
    size -= static_cast<size_t>(written);
    offset_ += static_cast<uint64_t>(written);
  }
}

void AtomicFile::align(size_t alignment) {
  const std::vector<char> zeros((alignment - offset_ % alignment) % alignment);
  write(zeros.data(), zeros.size());
}

void AtomicFile::close() {
  if (fd_ < 0) return;
  const int result = ::close(fd_);
  fd_ = -1;
  if (result != 0) fail(errno);
}

void AtomicFile::commit() {
  close();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

}  // namespace redfuser
