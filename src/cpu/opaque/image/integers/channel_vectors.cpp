#include "cpu/opaque/image/integers/channel_vectors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "redfuser/memory_limit.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kReach = 63;  // of a pattern
constexpr int64_t kTaps = ChannelVectors::kTaps;

struct Place {
  int64_t at;  // in the plane, as if it went on outside
  bool inside;
};

// The taps of positions.
class Taps {
 public:
  Taps(const Window& window, const TapGroups& groups) : w_(window) {
    for (int64_t group = 0; group < groups.count(); ++group) {
      const int64_t line = group / groups.across();
      groups_.push_back({line / w_.kernel[1] * w_.dilation[0], line % w_.kernel[1] * w_.dilation[1],
                         group % groups.across() * kTaps});
    }
  }

  // The window's place at a position.
  Size3 origin(int64_t position) const {
    const Size3 out = {position / w_.output[2] / w_.output[1],
                       position / w_.output[2] % w_.output[1], position % w_.output[2]};
    Size3 origin;
    for (size_t i = 0; i < 3; ++i) origin[i] = out[i] * w_.stride[i] - w_.pad_begin[i];
    return origin;
  }
  Place of(const Size3& origin, size_t group, int64_t tap) const {
    const Size3& first = groups_[group];
    const int64_t column = first[2] + tap;
    const Size3 x = {origin[0] + first[0], origin[1] + first[1],
                     origin[2] + column * w_.dilation[2]};
    bool inside = column < w_.kernel[2];
    for (size_t i = 0; i < 3; ++i) inside &= x[i] >= 0 && x[i] < w_.input[i];
    return {(x[0] * w_.input[1] + x[1]) * w_.input[2] + x[2], inside};
  }
  // Whether a position finds its taps as far from those of another one as patterns reach.
  bool is_near(const Size3& first, const Size3& other) const {
    for (size_t group = 0; group < groups_.size(); ++group) {
      const int64_t from = of(first, group, 0).at;
      for (int64_t tap = 0; tap < kTaps; ++tap) {
        const Place place = of(other, group, tap);
        if (place.inside && (place.at < from || place.at > from + kReach)) return false;
      }
    }
    return true;
  }

 private:
  const Window& w_;
  std::vector<Size3> groups_;  // their first taps
};

double product_of(const Size3& size) {
  return static_cast<double>(size[0]) * static_cast<double>(size[1]) * static_cast<double>(size[2]);
}

}  // namespace

bool ChannelVectors::reaches(const Window& w) { return (kTaps - 1) * w.dilation[2] <= kReach; }

bool ChannelVectors::takes(const Window& w) {
  constexpr double kMost = std::numeric_limits<int32_t>::max() / 2;
  Size3 padded;
  for (size_t i = 0; i < 3; ++i)
    padded[i] = w.pad_begin[i] + w.input[i] + (w.kernel[i] + kTaps) * w.dilation[i];
  return reaches(w) && product_of(padded) <= kMost && product_of(w.output) <= kMost;
}

ChannelVectors::ChannelVectors(const Window& window, const TapGroups& groups)
    : groups_(groups.count()) {
  const MemoryLimit none(0);  // they stay for later runs, and so count for none
  const Taps all(window, groups);
  const int64_t positions = count_of(window.output), plane = count_of(window.input);
  std::map<std::array<uint8_t, sizeof(BytePattern)>, int32_t> numbers;
  for (int64_t first = 0; first < positions;) {
    std::vector<Size3> origins = {all.origin(first)};
    const int64_t most = std::min(ByteVector::kLanes, positions - first);
    for (int64_t i = 1; i < most; ++i) {
      const Size3 origin = all.origin(first + i);
      if (!all.is_near(origins[0], origin)) break;
      origins.push_back(origin);
    }
    const auto count = static_cast<int32_t>(origins.size());
    vectors_.push_back({static_cast<int32_t>(first), count});
    for (size_t group = 0; group < static_cast<size_t>(groups_); ++group) {
      const int64_t from = all.of(origins[0], group, 0).at;
      std::array<uint8_t, sizeof(BytePattern)> bytes{};
      ByteVectorTaps taps{0, static_cast<int32_t>(from), 0};
      for (size_t i = 0; i < kTaps * origins.size(); ++i) {
        const Place place = all.of(origins[i / kTaps], group, i % kTaps);
        bytes[i] = static_cast<uint8_t>((place.at - from) & kReach);
        if (place.inside) reach_ = std::max(reach_, place.at - from);
        taps.inside |= static_cast<uint64_t>(place.inside) << i;
      }
      const auto [at, is_new] = numbers.emplace(bytes, static_cast<int32_t>(patterns_.size()));
      if (is_new) std::copy(bytes.begin(), bytes.end(), patterns_.emplace_back().bytes);
      taps.pattern = at->second;
      taps_.push_back(taps);
      before_ = std::max(before_, -from);
      after_ = std::max(after_, from + kReach + 1 - plane);
    }
    first += count;
  }
}

ByteVectorsArgs ChannelVectors::args(int64_t first, int64_t count) const {
  ByteVectorsArgs args;
  args.count = count;
  args.groups = groups_;
  args.vectors = vectors_.data() + first;
  args.taps = taps_.data() + first * groups_;
  args.patterns = patterns_.data();
  args.reach = reach_;
  return args;
}

}  // namespace redfuser::cpu
