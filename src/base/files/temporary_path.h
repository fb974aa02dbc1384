// Paths of unfinished files. The files are removed when their owners are destroyed and before a
// signal ends the process.
#pragma once

#include <atomic>
#include <string>

namespace redfuser {

// The destructor unlinks the path, and so does a signal that ends the process
// (remove_unfinished_files_on_signals). Register a path before the file is created.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& path);
  ~TemporaryPath();
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;

  const std::string& path() const { return path_; }
  // The path is kept: the file was renamed or never created.
  void release();

 private:
  std::string path_;
  std::atomic<char*>* slot_;
  char* registered_;  // in the slot until release() or a signal takes it
};

// While one exists, signals that would end the process wait. For short sequences that must not be
// interrupted, such as renaming two files.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
};

}  // namespace redfuser
