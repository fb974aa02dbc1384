#include "base/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace redfuser {
namespace {

namespace fs = std::filesystem;

// Linux writes at most about 2 GiB at once.
constexpr size_t kLargestWrite = size_t{1} << 30;
constexpr int kMaxLinks = 40;  // Linux's own bound

// Resolves symbolic links; the file need not exist.
fs::path behind_links(fs::path path) {
  for (int i = 0; i < kMaxLinks; ++i) {
    std::error_code error;
    const fs::path link = fs::read_symlink(path, error);
    if (error) break;
    path = path.parent_path() / link;
  }
  return path;
}

// Short, so that it is valid for a target of the longest possible name too.
std::string temporary_name(const std::string& target) {
  static std::atomic<unsigned> counter{0};
  const std::string name = fmt::format(".redfuser.{}.{}.tmp", ::getpid(), counter++);
  return (fs::path(target).parent_path() / name).string();
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(status.st_mode)) fail(EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(errno);
    return;
  }
  create_temporary(behind_links(path).string());
  if (exists) ::fchmod(descriptor_, status.st_mode & 0777);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::create_temporary(const std::string& target) {
  if (target.empty() || target.ends_with('/')) fail(ENOENT);
  target_ = target;
  do {
    temporary_ = std::make_unique<TemporaryPath>(temporary_name(target));
    descriptor_ = ::open(temporary_->path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return;
    const int error = errno;
    temporary_->release();
    // A killed process of the same number may have left its file.
    if (error != EEXIST) fail(error);
  } while (true);
}

void OutputFile::fail(int error) const {
  user_error("{}: cannot be written: {}", path_, std::strerror(error));
}

void OutputFile::write(const void* data, size_t bytes) {
  const auto* cursor = static_cast<const char*>(data);
  while (bytes != 0) {
    const ssize_t done = ::write(descriptor_, cursor, std::min(bytes, kLargestWrite));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(errno);
    cursor += done;
    position_ += static_cast<uint64_t>(done);
    bytes -= static_cast<size_t>(done);
  }
}

void OutputFile::align(size_t alignment) {
  write(std::string((alignment - position_ % alignment) % alignment, '\0'));
}

void OutputFile::close() {
  if (descriptor_ < 0) return;
  const int result = ::close(descriptor_);
  descriptor_ = -1;
  if (result != 0) fail(errno);
}

void OutputFile::commit() {
  close();
  if (!temporary_) return;
  if (::rename(temporary_->path().c_str(), target_.c_str()) != 0) fail(errno);
  temporary_->release();
}

void commit_together(const std::vector<OutputFile*>& files) {
  for (OutputFile* file : files) file->close();
  const HeldSignals held;
  for (OutputFile* file : files) file->commit();
}

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace redfuser
