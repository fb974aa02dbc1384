// Draws. A node with a seed draws the same values at every run, others never twice.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <random>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

std::mt19937_64 generator_of(const OpaqueCall& call) {
  if (call.has("seed")) {
    const auto* whole = std::get_if<int64_t>(&call.node().attributes.at("seed"));
    return std::mt19937_64(whole != nullptr ? static_cast<uint64_t>(*whole)
                                            : std::bit_cast<uint64_t>(call.real("seed", 0)));
  }
  static std::atomic<uint64_t> next{std::random_device()()};
  return std::mt19937_64(next.fetch_add(0x9e3779b97f4a7c15u));
}

// In [0, 1), of 53 bits.
double uniform(std::mt19937_64& generator) {
  return static_cast<double>(generator() >> 11) * 0x1p-53;
}

template <typename Draw>
void fill(Tensor& y, const Draw& draw) {
  dispatch(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < y.size(); ++i) y.as<T>()[i] = static_cast<T>(draw());
  });
}

Dims shape_of(const OpaqueCall& call) {
  return call.has_input(0) ? call.dims(0) : call.integers("shape", {});
}

}  // namespace

// Box and Muller's transformation, one of its two values.
void run_random_normal(OpaqueCall& call) {
  std::mt19937_64 generator = generator_of(call);
  const double mean = call.real("mean", 0), scale = call.real("scale", 1);
  fill(call.allocate(0, shape_of(call)), [&] {
    const double radius = std::sqrt(-2 * std::log(1 - uniform(generator)));
    return mean + scale * radius * std::cos(2 * M_PI * uniform(generator));
  });
}

void run_random_uniform(OpaqueCall& call) {
  std::mt19937_64 generator = generator_of(call);
  const double low = call.real("low", 0), high = call.real("high", 1);
  fill(call.allocate(0, shape_of(call)), [&] { return low + (high - low) * uniform(generator); });
}

// The input holds unnormalised log-probabilities.
void run_multinomial(OpaqueCall& call) {
  std::mt19937_64 generator = generator_of(call);
  const ChargedVector<double> logits = call.reals_of(0);
  const int64_t batch = call.dims(0)[0], classes = call.dims(0)[1];
  const int64_t samples = call.integer("sample_size", 1);
  Tensor& y = call.allocate(0, {batch, samples});
  for (int64_t b = 0; b < batch; ++b) {
    const double* row = logits.data() + b * classes;
    if (classes == 0) call.fail("there are no classes");
    const double largest = *std::max_element(row, row + classes);
    ChargedVector<double> sums;
    for (int64_t c = 0; c < classes; ++c) {
      sums.push_back((c == 0 ? 0 : sums.back()) + std::exp(row[c] - largest));
    }
    for (int64_t s = 0; s < samples; ++s) {
      const auto at = std::upper_bound(sums.begin(), sums.end(), uniform(generator) * sums.back());
      const auto chosen = std::min<int64_t>(at - sums.begin(), classes - 1);
      if (y.dtype() == DType::Int64) y.as<int64_t>()[b * samples + s] = chosen;
      if (y.dtype() == DType::Int32) {
        y.as<int32_t>()[b * samples + s] = static_cast<int32_t>(chosen);
      }
    }
  }
}

// Training: elements are dropped with probability `ratio`, the others scaled to keep the mean.
void run_dropout(OpaqueCall& call) {
  const Tensor x = call.widened(0);
  const bool training = call.has_input(2) && call.integer_of(2) != 0;
  const double ratio = !training ? 0 : call.has_input(1) ? call.real_of(1) : 0.5;
  if (!(ratio >= 0 && ratio < 1)) call.fail(fmt::format("a ratio of {}", ratio));
  std::mt19937_64 generator = generator_of(call);
  Tensor mask(DType::Bool, x.dims()), y(x.dtype(), x.dims());
  for (int64_t i = 0; i < x.size(); ++i) {
    mask.as<bool>()[i] = ratio == 0 || uniform(generator) >= ratio;
  }
  const double scale = 1 / (1 - ratio);
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.size(); ++i) {
      const double value = static_cast<double>(x.as<T>()[i]);
      y.as<T>()[i] = static_cast<T>(mask.as<bool>()[i] ? value * scale : 0.0);
    }
  });
  if (call.has_output(0)) call.set(0, y);
  if (call.has_output(1)) call.set(1, mask);
}

}  // namespace redfuser::cpu
