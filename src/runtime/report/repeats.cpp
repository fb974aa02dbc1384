#include "runtime/report/repeats.h"

#include <algorithm>
#include <map>

namespace redfuser::runtime {
namespace {

constexpr size_t kMostPeriod = 1500;
constexpr int kMostDepth = 32;  // bounds the work on files made to be slow

class Finder {
 public:
  explicit Finder(const std::vector<std::string>& sequence) {
    std::map<std::string, int> numbers;
    for (const std::string& element : sequence) {
      elements_.push_back(numbers.emplace(element, static_cast<int>(numbers.size())).first->second);
    }
  }

  void find(size_t begin, size_t end, int depth, std::vector<Repeat>& found) const {
    Repeat best;
    size_t gain = kLeastGain - 1;
    const size_t most = std::min((end - begin) / 2, kMostPeriod);
    for (size_t period = kLeastPeriod; period <= most; ++period) {
      size_t run = 0;
      for (size_t i = begin; i + period <= end; ++i) {
        const bool equal = i + period < end && elements_[i] == elements_[i + period];
        if (equal) {
          ++run;
          continue;
        }
        const size_t saved = run / period * period;
        if (saved > gain) {
          gain = saved;
          best = {i - run, period, run / period + 1};
        }
        run = 0;
      }
    }
    if (best.count == 0 || depth == kMostDepth) return;
    find(begin, best.begin, depth + 1, found);
    found.push_back(best);
    find(best.begin + best.period * best.count, end, depth + 1, found);
  }

 private:
  std::vector<int> elements_;
};

}  // namespace

std::vector<Repeat> find_repeats(const std::vector<std::string>& sequence) {
  std::vector<Repeat> found;
  Finder(sequence).find(0, sequence.size(), 0, found);
  return found;
}

}  // namespace redfuser::runtime
