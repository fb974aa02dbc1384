// Paths of unfinished results. They are removed with their owners, and before a signal ends the
// process.
#pragma once

#include <atomic>
#include <string>

namespace redfuser {

// Whatever is at the path is unlinked with the object, and before a signal ends the process
// (remove_unfinished_files_on_signals). Register a path before the file is made.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& path);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::string& path() const { return path_; }
  // Nothing is removed any more: the file has another name, or was never made.
  void release();

 private:
  std::string path_;
  std::atomic<char*>* slot_;
  char* registered_;  // in the slot until release() or a signal takes it
};

// While one exists, a signal that would end the process waits. For steps that belong together and
// take no time, such as renaming two files.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
};

}  // namespace redfuser
