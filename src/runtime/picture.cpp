#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "redfuser/export.h"
#include "runtime/file.h"

extern char** environ;

namespace redfuser {
namespace {

// A file that goes when its owner does.
class TemporaryFile {
 public:
  TemporaryFile() {
    const std::string pattern =
        (std::filesystem::temp_directory_path() / "redfuser-XXXXXX").string();
    path_ = pattern;
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) user_error("cannot create \"{}\": {}", pattern, std::strerror(errno));
    close(descriptor);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs Graphviz; returns its exit status, 127 if it is not there.
int run_dot(const std::string& input, const std::string& output) {
  std::string arguments[] = {"dot", "-Tsvg", "-o", output, input};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(),
                  arguments[3].data(), arguments[4].data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, "dot", nullptr, nullptr, argv, environ);
  if (error != 0) return 127;
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) internal_error("waitpid: {}", std::strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

void save_picture(const Program& program, const std::string& path) {
  const std::string text = to_dot(program);
  if (path.ends_with(".dot")) {
    write_text(path, text);
    return;
  }
  const TemporaryFile dot, svg;
  write_text(dot.path(), text);
  const int status = run_dot(dot.path(), svg.path());
  if (status == 127) {
    user_error(
        "\"{}\": drawing needs Graphviz, whose program `dot` is not on the PATH; a path "
        "that ends in .dot takes the graph as text",
        path);
  }
  if (status != 0) user_error("\"{}\": Graphviz failed with exit status {}", path, status);
  write_text(path, read_text(svg.path()));
}

}  // namespace redfuser
