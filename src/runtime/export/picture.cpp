#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/files/output_file.h"
#include "redfuser/export.h"

extern char** environ;

namespace redfuser {
namespace {

// An unlinked file, so that no temporary file can be left behind.
class UnnamedFile {
 public:
  UnnamedFile() : file_(std::tmpfile()) {
    if (file_ == nullptr) user_error("cannot create a temporary file: {}", std::strerror(errno));
  }
  ~UnnamedFile() { std::fclose(file_); }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;

  int descriptor() const { return fileno(file_); }

  // Rewinds the descriptor to the text.
  void set(const std::string& text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size();
    if (!written || std::fflush(file_) != 0 || std::fseek(file_, 0, SEEK_SET) != 0) {
      user_error("cannot write a temporary file: {}", std::strerror(errno));
    }
  }

  std::string text() {
    std::string result;
    char buffer[1 << 16];
    std::rewind(file_);
    while (const size_t got = std::fread(buffer, 1, sizeof buffer, file_)) {
      result.append(buffer, got);
    }
    return result;
  }

 private:
  std::FILE* file_;
};

// Runs Graphviz; returns its exit status, 127 if it is not installed.
int run_dot(int input, int output) {
  std::string arguments[] = {"dot", "-Tsvg"};
  char* argv[] = {arguments[0].data(), arguments[1].data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, "dot", &files, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) internal_error("waitpid: {}", std::strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

std::string picture(const Program& program) {
  UnnamedFile dot, svg;
  dot.set(to_dot(program));
  const int status = run_dot(dot.descriptor(), svg.descriptor());
  if (status == 127) {
    user_error(
        "drawing needs Graphviz, whose program `dot` is not on the PATH; a path that ends in .dot "
        "takes the graph as text");
  }
  if (status != 0) user_error("drawing failed: Graphviz has exit status {}", status);
  return svg.text();
}

void save_picture(const Program& program, const std::string& path) {
  write_text(path, path.ends_with(".dot") ? to_dot(program) : picture(program));
}

}  // namespace redfuser
