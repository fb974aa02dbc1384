// Convolutions of bytes channel by channel by the vectors of byte_vectors.h.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cpu/opaque/image/conv.h"
#include "cpu/opaque/image/integers/channel_vectors.h"

namespace redfuser::cpu {

class VectorFilters {
 public:
  // w [filters, taps...] less `zeros`, one or one for each filter. `groups`: of
  // ChannelVectors::kTaps.
  VectorFilters(const Tensor& w, std::span<const int64_t> zeros, const TapGroups& groups);

  // Of bytes x less `zero`: sums of int32 modulo 2^32. ChannelVectors takes the window, and the
  // machine has the kernel.
  void run(const ConvShape& shape, const Tensor& x, int64_t zero, SumsTarget& target,
           ThreadPool& pool) const;

 private:
  // The vectors of the last run's window.
  struct Kept {
    std::mutex mutex;
    Window window;
    std::shared_ptr<const ChannelVectors> vectors;
  };
  std::shared_ptr<const ChannelVectors> vectors_of(const Window& window) const;

  TapGroups groups_;
  int64_t rounds_ = 1;
  std::vector<uint32_t> words_;  // [rounds][filters / kFilters][groups][kFilters]
  std::vector<int32_t> sums_;    // of each filter's weights
  std::unique_ptr<Kept> kept_;
};

}  // namespace redfuser::cpu
