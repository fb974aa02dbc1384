#include "base/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace redfuser {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a fifo must not wait for a writer.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) user_error("{}: {}", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) user_error("{}: {}", path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) user_error("{}: is a directory, not a file", path);
  if (!S_ISREG(status.st_mode)) user_error("{}: is not a regular file", path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) user_error("{}: cannot be mapped: {}", path, std::strerror(errno));
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const uint8_t*>(address), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace redfuser
