// Which sizes grow from run to run, such as the positions of a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace redfuser::runtime {

// Runs whose length is at most this one share their memory and plans: a power of two.
int64_t greatest_length(int64_t length);

// Learned from the sizes of the runs: symbols that change together, by the same number, while no
// other one does.
class GrowingSymbols {
 public:
  // Before each run: its sizes, by symbol.
  void note(const std::vector<int64_t>& symbols);
  // Whether the last runs all changed the same symbols, so that the next one may be expected to.
  bool steady() const;
  // By symbol, as of the last runs that were steady; empty until then.
  const std::vector<bool>& grows() const { return grows_; }
  // The sizes of the greatest run of the length class of these; nullopt where nothing grows or they
  // are too large.
  std::optional<std::vector<int64_t>> greatest(const std::vector<int64_t>& symbols) const;

 private:
  std::vector<int64_t> last_;
  std::vector<bool> changed_, grows_;
  int runs_ = 0;  // in succession that changed the same symbols
};

}  // namespace redfuser::runtime
