// Fourier transforms and the mel filter bank.
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

using Complex = std::complex<double>;

bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

// Radix two, in place (Cooley and Tukey).
void transform_power(ChargedVector<Complex>& x, double sign) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t length = 2; length <= n; length *= 2) {
    for (size_t k = 0; k < length / 2; ++k) {
      const double angle = sign * 2 * M_PI * static_cast<double>(k) / static_cast<double>(length);
      const Complex w(std::cos(angle), std::sin(angle));
      for (size_t at = k; at < n; at += length) {
        const Complex odd = w * x[at + length / 2];
        x[at + length / 2] = x[at] - odd;
        x[at] += odd;
      }
    }
  }
}

// Σ_t x_t exp(sign·2πi·k·t/n) for every k; other lengths through a convolution of a power of two
// (Bluestein). The phase k²/2 is reduced modulo n exactly.
void transform(ChargedVector<Complex>& x, double sign) {
  const size_t n = x.size();
  if (n < 2) return;
  if (is_power_of_two(n)) return transform_power(x, sign);
  ChargedVector<Complex> chirp(n);
  for (size_t k = 0; k < n; ++k) {
    const auto phase = static_cast<double>(static_cast<unsigned __int128>(k) * k % (2 * n));
    const double angle = sign * M_PI * phase / static_cast<double>(n);
    chirp[k] = {std::cos(angle), std::sin(angle)};
  }
  size_t padded = 1;
  while (padded < 2 * n) padded *= 2;
  ChargedVector<Complex> a(padded), b(padded);
  for (size_t k = 0; k < n; ++k) a[k] = x[k] * chirp[k];
  b[0] = std::conj(chirp[0]);
  for (size_t k = 1; k < n; ++k) b[k] = b[padded - k] = std::conj(chirp[k]);
  transform_power(a, -1);
  transform_power(b, -1);
  for (size_t k = 0; k < padded; ++k) a[k] *= b[k];
  transform_power(a, 1);
  for (size_t k = 0; k < n; ++k) x[k] = a[k] / static_cast<double>(padded) * chirp[k];
}

// The tensor as doubles, whatever float it holds.
ChargedVector<double> doubles_of(const Tensor& tensor) {
  ChargedVector<double> values(static_cast<size_t>(tensor.size()));
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(tensor.as<T>()[i]);
  });
  return values;
}

void store(Tensor& tensor, const ChargedVector<double>& values) {
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) tensor.as<T>()[i] = static_cast<T>(values[i]);
  });
}

}  // namespace

void run_dft(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const int rank = static_cast<int>(x.dims().size());
  int64_t wanted = call.opset() < 20 ? call.integer("axis", 1) : -2;
  if (call.has_input(2)) wanted = call.integer_of(2);
  const int axis = call.axis(wanted, rank);
  const bool inverse = call.integer("inverse", 0) != 0, onesided = call.integer("onesided", 0) != 0;
  const int64_t parts = x.dims().back(), given = x.dims()[static_cast<size_t>(axis)];
  if (parts != 1 && parts != 2) call.fail("the last dimension must be 1 or 2");
  const bool real_result = inverse && onesided;
  int64_t length = real_result ? 2 * (given - 1) : given;
  if (call.has_input(1)) length = call.integer_of(1);
  if (length < 1) call.fail(fmt::format("a transform of {} points", length));
  const int64_t bins = real_result || !onesided ? length : length / 2 + 1;
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = bins;
  dims.back() = real_result ? 1 : 2;
  Tensor& y = call.allocate(0, dims);
  const AxisView in = around_axis(x.dims(), axis);
  const int64_t inner = in.inner / parts, out_parts = dims.back();
  const ChargedVector<double> values = doubles_of(x);
  ChargedVector<double> results(static_cast<size_t>(y.size()));
  for (int64_t line = 0; line < in.outer * inner; ++line) {
    const int64_t o = line / inner, i = line % inner;
    ChargedVector<Complex> points(static_cast<size_t>(length));
    for (int64_t t = 0; t < std::min(given, length); ++t) {
      const auto at = static_cast<size_t>(((o * given + t) * inner + i) * parts);
      points[static_cast<size_t>(t)] = {values[at], parts == 2 ? values[at + 1] : 0};
    }
    // The other half of a real signal's spectrum is the conjugate of the first.
    for (int64_t t = std::max<int64_t>(given, 1); real_result && t < length; ++t) {
      points[static_cast<size_t>(t)] = std::conj(points[static_cast<size_t>(length - t)]);
    }
    transform(points, inverse ? 1 : -1);
    for (int64_t k = 0; k < bins; ++k) {
      const Complex value =
          points[static_cast<size_t>(k)] / (inverse ? static_cast<double>(length) : 1.0);
      const auto at = static_cast<size_t>(((o * bins + k) * inner + i) * out_parts);
      results[at] = value.real();
      if (out_parts == 2) results[at + 1] = value.imag();
    }
  }
  store(y, results);
}

void run_stft(OpaqueCall& call) {
  const Tensor& signal = call.tensor(0);
  const int64_t step = call.integer_of(1);
  ChargedVector<double> window;
  if (call.has_input(2)) window = doubles_of(call.tensor(2));
  const int64_t length =
      call.has_input(3) ? call.integer_of(3) : static_cast<int64_t>(window.size());
  const int64_t batch = signal.dims()[0], samples = signal.dims()[1];
  const int64_t parts = signal.dims().size() > 2 ? signal.dims()[2] : 1;
  if (signal.dims().size() > 3 || (parts != 1 && parts != 2)) {
    call.fail("the signal must be [batch,length,1 or 2]");
  }
  const auto weights = static_cast<int64_t>(window.size());
  if (step < 1 || length < 1 || length > samples || (call.has_input(2) && weights != length)) {
    call.fail(fmt::format("frames of {} every {} in {} samples, window of {}", length, step,
                          samples, weights));
  }
  if (!call.has_input(2)) window.assign(static_cast<size_t>(length), 1);
  const bool onesided = call.integer("onesided", 1) != 0;
  const int64_t frames = (samples - length) / step + 1, bins = onesided ? length / 2 + 1 : length;
  Tensor& y = call.allocate(0, {batch, frames, bins, 2});
  const ChargedVector<double> values = doubles_of(signal);
  ChargedVector<double> results(static_cast<size_t>(y.size()));
  for (int64_t frame = 0; frame < batch * frames; ++frame) {
    const int64_t begin = frame / frames * samples + frame % frames * step;
    ChargedVector<Complex> points(static_cast<size_t>(length));
    for (int64_t t = 0; t < length; ++t) {
      const auto at = static_cast<size_t>((begin + t) * parts);
      const double w = window[static_cast<size_t>(t)];
      points[static_cast<size_t>(t)] = {values[at] * w, parts == 2 ? values[at + 1] * w : 0};
    }
    transform(points, -1);
    for (int64_t k = 0; k < bins; ++k) {
      results[static_cast<size_t>((frame * bins + k) * 2)] = points[static_cast<size_t>(k)].real();
      results[static_cast<size_t>((frame * bins + k) * 2 + 1)] =
          points[static_cast<size_t>(k)].imag();
    }
  }
  store(y, results);
}

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
  store(y, weights);
}

}  // namespace redfuser::cpu
