// The fastest choices for tasks on a machine, kept between runs in the folder of compiled kernels.
//
// An entry is choices/KEY.json with the task as text, the choice and its times. It is written to a
// temporary file and renamed, so it appears whole or not at all. A damaged or foreign entry is
// ignored with a warning.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda/kernel_cache.h"

namespace redfuser::cuda {

struct MeasuredChoice {
  std::string choice;
  std::vector<std::pair<std::string, double>> measured;  // microseconds; the default first

  // InternalError if it was not measured.
  double us() const;
  double default_us() const { return measured.front().second; }
};

class ChoiceCache {
 public:
  // `identity` is everything else that the times depend on: the GPU and its compilers.
  ChoiceCache(const CacheOptions& options, std::vector<std::string> identity);

  std::optional<MeasuredChoice> load(const std::string& task);
  // Nothing unless the cache is On.
  void store(const std::string& task, const MeasuredChoice& choice);

  // The path of a task's entry.
  std::string path(const std::string& task) const;
  // The warnings of all calls so far.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  CacheOptions options_;
  std::vector<std::string> identity_;
  std::vector<std::string> warnings_;
  bool unwritable_ = false;
};

}  // namespace redfuser::cuda
