#include "runtime/program/sizes/growing_symbols.h"

#include <algorithm>
#include <bit>

namespace redfuser::runtime {
namespace {

constexpr int64_t kShortest = 16, kLongest = int64_t{1} << 40;
constexpr int kSteadyRuns = 3;

// The symbols that differ, all by the same number; empty where they differ by others.
std::vector<bool> changed(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  std::vector<bool> result(after.size());
  int64_t more = 0;
  for (size_t i = 0; i < after.size(); ++i) {
    const int64_t own = after[i] - before[i];
    if (own == 0) continue;
    if (more != 0 && own != more) return {};
    more = own;
    result[i] = true;
  }
  return result;
}

bool has_all(const std::vector<bool>& symbols, const std::vector<bool>& of) {
  if (symbols.size() != of.size()) return false;
  for (size_t i = 0; i < of.size(); ++i) {
    if (of[i] && !symbols[i]) return false;
  }
  return true;
}

}  // namespace

int64_t greatest_length(int64_t length) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(length, kShortest))));
}

void GrowingSymbols::note(const std::vector<int64_t>& symbols, const std::vector<bool>& appended) {
  appended_ = appended;
  if (!appended_.empty() && !has_all(grows_, appended_)) grows_ = appended_;
  if (symbols == last_) return;
  std::vector<bool> now;
  if (last_.size() == symbols.size()) now = changed(last_, symbols);
  runs_ = !now.empty() && now == changed_ ? runs_ + 1 : 1;
  changed_ = std::move(now);
  last_ = symbols;
  if (learned()) grows_ = changed_;
}

bool GrowingSymbols::learned() const { return !changed_.empty() && runs_ >= kSteadyRuns; }

bool GrowingSymbols::steady() const { return learned() || !appended_.empty(); }

std::optional<std::vector<int64_t>> GrowingSymbols::greatest(
    const std::vector<int64_t>& symbols) const {
  const auto first = std::find(grows_.begin(), grows_.end(), true);
  if (first == grows_.end()) return std::nullopt;
  const int64_t length = symbols[static_cast<size_t>(first - grows_.begin())];
  if (length < 0 || length > kLongest) return std::nullopt;
  std::vector<int64_t> most = symbols;
  for (size_t i = 0; i < most.size(); ++i) {
    if (grows_[i]) most[i] += greatest_length(length) - length;
  }
  return most;
}

}  // namespace redfuser::runtime
