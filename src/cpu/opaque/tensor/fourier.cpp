#include "cpu/opaque/tensor/fourier.h"

#include <algorithm>
#include <cmath>

#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {
namespace {

// The radix of the next pass over `rest` points that are not yet transformed; 0 if there is none.
int64_t next_radix(int64_t rest) {
  for (const int64_t radix : kFourierRadices) {
    if (rest % radix == 0) return radix;
  }
  return 0;
}

bool has_passes(int64_t points) {
  while (points > 1) {
    const int64_t radix = next_radix(points);
    if (radix == 0) return false;
    points /= radix;
  }
  return true;
}

}  // namespace

FourierTables::FourierTables(int64_t points, bool real)
    : points_(points), halved_(real && points % 2 == 0) {
  inner_ = halved_ ? points / 2 : points;
  const bool direct = has_passes(inner_);
  if (direct || halved_) roots_ = roots_of(points_);
  if (!direct) prepare_chirp();
}

FourierTables::Table FourierTables::roots_of(int64_t count) {
  Table roots(static_cast<size_t>(2 * count));
  for (int64_t k = 0; k < count; ++k) {
    const double angle = 2 * M_PI * static_cast<double>(k) / static_cast<double>(count);
    roots[static_cast<size_t>(2 * k)] = std::cos(angle);
    roots[static_cast<size_t>(2 * k + 1)] = std::sin(angle);
  }
  return roots;
}

// k·t = (k² + t² − (k − t)²) / 2.
void FourierTables::prepare_chirp() {
  padded_ = 1;
  while (padded_ < 2 * inner_ - 1) padded_ *= 2;
  padded_roots_ = roots_of(padded_);
  chirp_.resize(static_cast<size_t>(2 * inner_));
  ChargedVector<double> x(static_cast<size_t>(2 * padded_)), other(x.size());
  for (int64_t k = 0; k < inner_; ++k) {
    const auto phase =
        static_cast<double>(static_cast<unsigned __int128>(k) * static_cast<uint64_t>(k) %
                            static_cast<uint64_t>(2 * inner_));
    const double angle = M_PI * phase / static_cast<double>(inner_);
    const double re = std::cos(angle), im = std::sin(angle);
    chirp_[static_cast<size_t>(2 * k)] = re;
    chirp_[static_cast<size_t>(2 * k + 1)] = -im;
    for (const int64_t at : {k, (padded_ - k) % padded_}) {
      x[static_cast<size_t>(2 * at)] = re / static_cast<double>(padded_);
      x[static_cast<size_t>(2 * at + 1)] = im / static_cast<double>(padded_);
    }
  }
  double *from = x.data(), *to = other.data();
  run_passes(*kernels().fourier_single, padded_, padded_roots_, from, to);
  spectrum_.assign(from, from + 2 * padded_);
}

int64_t FourierTables::buffer_size(int64_t lanes) const {
  return 2 * lanes * std::max(inner_ + 1, padded_);
}

void FourierTables::run_passes(const FourierKernels& kernels, int64_t points, const Table& roots,
                               double*& x, double*& other) {
  FourierPassArgs args;
  args.points = points;
  args.roots = roots.data();
  args.count = static_cast<int64_t>(roots.size()) / 2;
  for (args.done = 1; args.done < points; args.done *= args.radix) {
    args.radix = next_radix(points / args.done);
    args.in = x;
    args.out = other;
    kernels.pass(args);
    std::swap(x, other);
  }
}

void FourierTables::convolve(const FourierKernels& kernels, double*& x, double*& other) const {
  std::fill(x + 2 * kernels.lanes * inner_, x + 2 * kernels.lanes * padded_, 0);
  kernels.multiply({inner_, chirp_.data(), x, x});
  run_passes(kernels, padded_, padded_roots_, x, other);
  kernels.multiply({padded_, spectrum_.data(), x, x, false, true});
  run_passes(kernels, padded_, padded_roots_, x, other);
  kernels.multiply({inner_, chirp_.data(), x, x, true, false});
}

const double* FourierTables::transform(const FourierKernels& kernels, double* x,
                                       double* other) const {
  padded_ > 0 ? convolve(kernels, x, other) : run_passes(kernels, inner_, roots_, x, other);
  if (!halved_) return x;
  kernels.untangle({inner_, roots_.data(), x, other});
  return other;
}

}  // namespace redfuser::cpu
