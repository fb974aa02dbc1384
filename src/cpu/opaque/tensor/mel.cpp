// The mel filter bank.
#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {

// Triangles over the bins of a spectrum, their corners evenly spaced in mel.
void run_mel_weight_matrix(OpaqueCall& call) {
  const int64_t mels = call.integer_of(0), length = call.integer_of(1);
  const double rate = call.real_of(2);
  const double low = call.real_of(3), high = call.real_of(4);
  if (mels < 1 || length < 1 || !(rate > 0)) call.fail("sizes and rate must be positive");
  const int64_t bins = length / 2 + 1;
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low_mel = to_mel(low),
               step = (to_mel(high) - low_mel) / (static_cast<double>(mels) + 2);
  Tensor& y = call.allocate(0, {bins, mels});
  ChargedVector<int64_t> corners;
  for (int64_t m = 0; m < mels + 2; ++m) {
    const double hertz = 700 * (std::pow(10, (low_mel + step * static_cast<double>(m)) / 2595) - 1);
    const double corner = std::floor(static_cast<double>(length + 1) * hertz / rate);
    if (!(std::abs(corner) < 0x1p52)) call.fail("the frequencies do not give bins");
    corners.push_back(static_cast<int64_t>(corner));
  }
  ChargedVector<double> weights(static_cast<size_t>(y.size()));
  const auto set = [&](int64_t bin, int64_t mel, double weight) {
    if (bin >= 0 && bin < bins) weights[static_cast<size_t>(bin * mels + mel)] = weight;
  };
  for (int64_t m = 0; m < mels; ++m) {
    const int64_t begin = corners[static_cast<size_t>(m)],
                  centre = corners[static_cast<size_t>(m) + 1];
    const int64_t end = corners[static_cast<size_t>(m) + 2];
    if (centre == begin) set(centre, m, 1);
    const int64_t first = std::max<int64_t>(begin, 0), middle = std::max<int64_t>(centre, 0);
    for (int64_t b = first; centre != begin && b <= std::min(centre, bins - 1); ++b) {
      set(b, m, static_cast<double>(b - begin) / static_cast<double>(centre - begin));
    }
    for (int64_t b = middle; end != centre && b < std::min(end, bins); ++b) {
      set(b, m, static_cast<double>(end - b) / static_cast<double>(end - centre));
    }
  }
  dispatch(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < weights.size(); ++i) y.as<T>()[i] = static_cast<T>(weights[i]);
  });
}

}  // namespace redfuser::cpu
