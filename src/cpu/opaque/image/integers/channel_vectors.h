// The windows of a channel as the vectors of byte_vectors.h.
#pragma once

#include <vector>

#include "cpu/opaque/image/integers/byte_words.h"
#include "cpu/opaque/image/window.h"
#include "cpu/simd/integers/byte_vectors.h"

namespace redfuser::cpu {

// Of one output plane, in order. Each vector has as many positions as find the taps of each group
// within 64 bytes.
class ChannelVectors {
 public:
  static constexpr int64_t kTaps = 4;  // of a group

  // Taps of a group lie at most 63 bytes apart.
  static bool reaches(const Window& window);
  // The same, and planes have less than 2^30 elements.
  static bool takes(const Window& window);
  // `groups`: of kTaps.
  ChannelVectors(const Window& window, const TapGroups& groups);

  int64_t count() const { return static_cast<int64_t>(vectors_.size()); }
  const ByteVector& vector(int64_t v) const { return vectors_[static_cast<size_t>(v)]; }
  // The vectors' part of the arguments, of `count` vectors from `first` on.
  ByteVectorsArgs args(int64_t first, int64_t count) const;
  // Bytes that are read before and after the input plane.
  int64_t before() const { return before_; }
  int64_t after() const { return after_; }

 private:
  int64_t groups_, before_ = 0, after_ = 0, reach_ = 0;
  std::vector<ByteVector> vectors_;
  std::vector<ByteVectorTaps> taps_;
  std::vector<BytePattern> patterns_;
};

}  // namespace redfuser::cpu
