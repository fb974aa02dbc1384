// Which sizes grow from run to run, such as the positions of a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace redfuser::runtime {

// Runs whose length is at most this one share their memory and plans: a power of two.
int64_t greatest_length(int64_t length);

// Learned from the sizes of the runs: symbols that change together, by the same number, while no
// other one does. Until then they are those that a run's memory with room lets expect.
class GrowingSymbols {
 public:
  // Before each run: its sizes, and whether it appends to memory with room, by symbol (empty:
  // none).
  void note(const std::vector<int64_t>& symbols, const std::vector<bool>& appended = {});
  // Whether the next run may be expected to change the same symbols: the last runs all did, or this
  // one appends to memory with room.
  bool steady() const;
  // By symbol; empty until runs were steady.
  const std::vector<bool>& grows() const { return grows_; }
  // The sizes of the greatest run of the length class of these; nullopt where nothing grows or they
  // are too large.
  std::optional<std::vector<int64_t>> greatest(const std::vector<int64_t>& symbols) const;

 private:
  bool learned() const;

  std::vector<int64_t> last_;
  std::vector<bool> changed_, grows_, appended_;
  int runs_ = 0;  // in succession that changed the same symbols
};

}  // namespace redfuser::runtime
