// What the tools write to stdout and stderr.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace redfuser::tools {

// Makes sure that the three standard streams are open: a file opened later must not take the
// place of a closed one. Writing to one that was closed fails.
void open_standard_streams();

// Writes to a file, or to stdout for "-". A failure of stdout is kept for stdout_failure(), so that
// results that go elsewhere are still written; a failure of a file is a UserError.
void write_output(const std::string& path, const std::string& text);

// The reason why something written to stdout was lost; empty if nothing was.
std::string stdout_failure();

// Writes to stderr. A failure has nobody to be told to.
void tell(const std::string& text);

// True if one of the options (with their values) writes its result to stdout ("-"). UserError, with
// the names of both, if two do.
bool takes_stdout(const std::vector<std::pair<std::string, std::string>>& options);

// What a tool says in words: to stdout, or to stderr where a result takes stdout.
class Words {
 public:
  explicit Words(bool stdout_taken) : stdout_taken_(stdout_taken) {}
  void say(const std::string& text) const;

 private:
  bool stdout_taken_;
};

}  // namespace redfuser::tools
