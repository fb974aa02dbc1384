#include "streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "redfuser/io.h"
#include "tool.h"

namespace redfuser::tools {
namespace {

int stdout_error = 0;  // the errno of the first failure

}  // namespace

void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free descriptor is the one; for reading only, so that what is written is missed.
    if (fcntl(descriptor, F_GETFD) < 0) open("/dev/null", O_RDONLY);
  }
}

void write_output(const std::string& path, const std::string& text) {
  if (path != "-") return save_text(path, text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  const bool flushed = written && std::fflush(stdout) == 0;
  if (!flushed && stdout_error == 0) stdout_error = errno;
}

std::string stdout_failure() { return stdout_error == 0 ? "" : std::strerror(stdout_error); }

void tell(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

bool takes_stdout(const std::vector<std::pair<std::string, std::string>>& options) {
  std::string first;
  for (const auto& [option, value] : options) {
    if (value != "-") continue;
    if (!first.empty()) fail("{} and {} cannot both be written to stdout", first, option);
    first = option;
  }
  return !first.empty();
}

void Words::say(const std::string& text) const {
  stdout_taken_ ? tell(text) : write_output("-", text);
}

}  // namespace redfuser::tools
