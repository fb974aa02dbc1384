#include "io/did_you_mean.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace redfuser::io {
namespace {

constexpr size_t kLongestName = 256;

// Levenshtein's distance, one row at a time.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string did_you_mean(const std::string& name, const std::vector<std::string>& candidates) {
  if (name.size() > kLongestName) return "";
  size_t best = std::max<size_t>(2, name.size() / 2) + 1;
  const std::string* closest = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      closest = &candidate;
    }
  }
  return closest ? fmt::format("; did you mean \"{}\"?", *closest) : "";
}

}  // namespace redfuser::io
