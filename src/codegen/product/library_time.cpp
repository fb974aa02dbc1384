#include "codegen/product/library_time.h"

#include <algorithm>
#include <cmath>

#include "select/overlap.h"

namespace redfuser::codegen {
namespace {

double count(ir::Expr size, const KnownSizes& sizes, double otherwise = 1) {
  return size == nullptr ? otherwise : static_cast<double>(std::max<int64_t>(sizes.of(size), 0));
}

// Whether 16-bit rows start or end in the middle of a vector: the library loads them one by one.
bool ragged(const ProductCall& call, const KnownSizes& sizes) {
  constexpr int64_t kUnit = 8;
  if (size_of(call.dtype) != 2) return false;
  const auto is_ragged = [&](ir::Expr size) { return sizes.of(size) % kUnit != 0; };
  const auto pitch = [](ir::Expr row, ir::Expr column) {
    return column->is_constant(1) ? row : column;
  };
  return is_ragged(call.padded_n ? call.padded_n : call.n) ||
         is_ragged(call.padded_k ? call.padded_k : call.k) ||
         is_ragged(pitch(call.a_row, call.a_column)) || is_ragged(pitch(call.b_row, call.b_column));
}

struct Sizes {
  double batch, m, n, k;
};

// A tile of a product, by blocks that each take a part of k. Constants are fitted to cuBLASLt's
// first algorithm for products drawn at random, on an H200.
class TileTime {
 public:
  TileTime(const ProductCall& call, const KnownSizes& sizes, const Target& target)
      : target_(target), ragged_(ragged(call, sizes)), bytes_(size_of(call.dtype)) {
    // Cycles of kStep elements of k, from the load to the sum.
    constexpr double kTensorLatency = 250, kScalarLatency = 1440, kRaggedLatency = 3;
    constexpr double kScalarShare = 0.75;
    const bool tensor = bytes_ <= 2 || target.tf32;
    rate_ = (tensor ? target.tensor_rate(call.dtype) : kScalarShare * target.scalar_rate()) /
            target.multiprocessors;
    latency_ = target.microseconds(tensor ? kTensorLatency : kScalarLatency) *
               (ragged_ ? kRaggedLatency : 1);
  }

  // Microseconds of all blocks, the least of the sizes of tiles and of the parts.
  double of(const Sizes& product) const {
    constexpr double kSides[] = {32, 64, 128};
    double least = HUGE_VAL;
    for (const double height : kSides) {
      for (const double width : kSides) {
        const double tiles =
            product.batch * std::ceil(product.m / height) * std::ceil(product.n / width);
        least = std::min(least, of_parts(product, height, width, tiles));
      }
    }
    return least;
  }

 private:
  static constexpr double kStep = 32;

  double of_parts(const Sizes& product, double height, double width, double tiles) const {
    constexpr double kMostParts = 32, kShortestPart = 128, kBlocks = 2;
    constexpr double kSumTime = 1.7;  // of another kernel, but for its reads
    double least = of_blocks(product.k, height, width, tiles);
    for (double parts = 2; parts <= kMostParts; parts *= 2) {
      const bool idle = tiles * parts <= kBlocks * target_.multiprocessors;
      if (!idle || product.k / parts < kShortestPart) break;
      const double partials = 4 * parts * product.batch * product.m * product.n;
      least = std::min(least, of_blocks(product.k / parts, height, width, tiles * parts) +
                                  kSumTime + partials / target_.l2_rate());
    }
    return least;
  }

  double of_blocks(double k, double height, double width, double blocks) const {
    // Bytes of a cycle; blocks of a multiprocessor whose latencies overlap.
    constexpr double kLoaded = 45, kOverlap = 4, kRaggedLoads = 10;
    const double turns = std::ceil(blocks / target_.multiprocessors), steps = std::ceil(k / kStep);
    const double work = 2 * height * width * kStep / rate_;
    const double loads =
        target_.microseconds((height + width) * kStep * static_cast<double>(bytes_) / kLoaded) *
        (ragged_ ? kRaggedLoads : 1);
    return steps * (turns * std::max(work, loads) + latency_ * std::max(1.0, turns / kOverlap));
  }

  const Target& target_;
  bool ragged_;
  size_t bytes_;
  double rate_ = 0, latency_ = 0;
};

double product_time(const ProductCall& call, const KnownSizes& sizes, const Target& target) {
  constexpr double kStartTime = 2;
  const Sizes product = {count(call.batch, sizes), count(call.m, sizes), count(call.n, sizes),
                         count(call.k, sizes)};
  const auto& [batch, m, n, k] = product;
  if (batch * m * n == 0) return 0;
  const auto bytes = static_cast<double>(size_of(call.dtype));
  const double once = call.b_batch != nullptr && call.b_batch->is_constant(0) ? 1 : batch;
  const double memory = (batch * m * k + once * k * n) * bytes +
                        batch * m * n * static_cast<double>(size_of(call.result));
  return select::kLaunchTime + kStartTime +
         select::overlapped(TileTime(call, sizes, target).of(product), memory / target.dram_rate);
}

}  // namespace

double time_of(const GpuCall& call, const KnownSizes& sizes, const Target& target) {
  if (const auto* product = std::get_if<ProductCall>(&call)) {
    return product_time(*product, sizes, target);
  }
  const auto& launch = std::get<KernelLaunch>(call);
  return sizes.of(launch.grid[0]) == 0 ? 0 : launch.time;
}

double time_of(const GpuStep& step, const KnownSizes& sizes, const Target& target) {
  double time = 0;
  for (const GpuCall& call : step.calls) time += time_of(call, sizes, target);
  return time;
}

}  // namespace redfuser::codegen
