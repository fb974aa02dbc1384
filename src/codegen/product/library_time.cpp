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

// Microseconds of a kernel's start, of the kernel that adds parts, and of adding the addend;
// cycles of kStep elements of k, from the load to the sum, and bytes of a cycle that a
// multiprocessor loads; the share of the machine's rate that a tile's products take, and that all
// products reach; that of memory; blocks of a multiprocessor whose latencies overlap; how much of
// an unfilled turn is saved; whether k of several products is divided into parts.
struct LibraryRates {
  double start, parts, addend, latency, loaded, share, most, memory, overlap, unfilled;
  bool divides_batches = true;
};
// Fitted to cuBLASLt's first algorithm for products drawn at random, on an H200: of 16-bit matrices
// that it loads by vectors, of 8-bit floats, of others that tensor cores multiply, and of others.
constexpr LibraryRates kVectors = {2.94, 3.72, 0.98, 56.3, 103.6, 1.926, 1.11, 0.779, 2.34, 0.34};
constexpr LibraryRates kCodes = {4.6, 19.2, 0.98, 82.5, 88, 2.62, 1.01, 0.611, 2.34, 0.34};
constexpr LibraryRates kTensors = {2, 1.7, 0, 250, 45, 1, 1, 1, 4, 0};
constexpr LibraryRates kRagged = {2, 1.7, 0, 750, 4.5, 1, 1, 1, 4, 0};
constexpr LibraryRates kScalars = {3.15,  1.32,  0,    1633,  32.5, 0.761,
                                   0.708, 0.452, 3.94, 0.881, false};
// Of a call's start, what passes while the call before it ends.
constexpr double kFollowing = 2.53;

bool by_tensor_cores(const ProductCall& call, const Target& target) {
  return size_of(call.dtype) <= 2 || target.tf32;
}

const LibraryRates& rates_of(const ProductCall& call, const KnownSizes& sizes,
                             const Target& target) {
  if (!by_tensor_cores(call, target)) return kScalars;
  if (size_of(call.dtype) > 2) return kTensors;
  if (is_low_bit_float(call.dtype)) return kCodes;
  return ragged(call, sizes) ? kRagged : kVectors;
}

// A tile of a product, by blocks that each take a part of k.
class TileTime {
 public:
  TileTime(const ProductCall& call, const LibraryRates& rates, const Target& target)
      : rates_(rates),
        target_(target),
        bytes_(static_cast<double>(size_of(call.dtype))),
        rate_((by_tensor_cores(call, target) ? target.tensor_rate(call.dtype)
                                             : target.scalar_rate()) /
              target.multiprocessors) {}

  // Microseconds of all blocks, the least of the sizes of tiles and of the parts.
  double of(const Sizes& product) const {
    constexpr double kSides[] = {32, 64, 128, 192, 256};
    constexpr double kLong = 128;  // more than one side at most has; of longer products
    double least = HUGE_VAL;
    for (const double height : kSides) {
      for (const double width : kSides) {
        if (height > kLong && (width > kLong || product.m <= kLong)) continue;
        if (width > kLong && product.n <= kLong) continue;
        const double tiles =
            product.batch * std::ceil(product.m / height) * std::ceil(product.n / width);
        least = std::min(least, of_parts(product, height, width, tiles));
      }
    }
    const double operations = 2 * product.batch * product.m * product.n * product.k;
    return std::max(least, operations / (rates_.most * rate_ * target_.multiprocessors));
  }

 private:
  static constexpr double kStep = 32;

  double of_parts(const Sizes& product, double height, double width, double tiles) const {
    constexpr double kMostParts = 32, kShortestPart = 128, kBlocks = 2;
    double least = of_blocks(product.k, height, width, tiles);
    if (product.batch > 1 && !rates_.divides_batches) return least;
    for (double parts = 2; parts <= kMostParts; parts *= 2) {
      const bool idle = tiles * parts <= kBlocks * target_.multiprocessors;
      if (!idle || product.k / parts < kShortestPart) break;
      const double partials = 4 * parts * product.batch * product.m * product.n;
      least = std::min(least, of_blocks(product.k / parts, height, width, tiles * parts) +
                                  rates_.parts + partials / target_.l2_rate());
    }
    return least;
  }

  double of_blocks(double k, double height, double width, double blocks) const {
    const double filled = blocks / target_.multiprocessors, steps = std::ceil(k / kStep);
    const double turns =
        std::max(1.0, std::ceil(filled) - rates_.unfilled * (std::ceil(filled) - filled));
    const double work = 2 * height * width * kStep / (rates_.share * rate_);
    const double loads = target_.microseconds((height + width) * kStep * bytes_ / rates_.loaded);
    return steps * (turns * std::max(work, loads) +
                    target_.microseconds(rates_.latency) * std::max(1.0, turns / rates_.overlap));
  }

  const LibraryRates& rates_;
  const Target& target_;
  double bytes_, rate_;
};

double product_time(const ProductCall& call, const KnownSizes& sizes, const Target& target) {
  const Sizes product = {count(call.batch, sizes), count(call.m, sizes), count(call.n, sizes),
                         count(call.k, sizes)};
  const auto& [batch, m, n, k] = product;
  if (batch * m * n == 0) return 0;
  const auto bytes = static_cast<double>(size_of(call.dtype));
  const double once = call.b_batch != nullptr && call.b_batch->is_constant(0) ? 1 : batch;
  const double results =
      (call.addend.defined() ? 2 : 1) * static_cast<double>(size_of(call.result));
  const double memory = (batch * m * k + once * k * n) * bytes + batch * m * n * results;
  const LibraryRates& rates = rates_of(call, sizes, target);
  return select::kLaunchTime + rates.start + (call.addend.defined() ? rates.addend : 0) +
         select::overlapped(TileTime(call, rates, target).of(product),
                            memory / (rates.memory * target.dram_rate));
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
  bool follows = false;
  for (const GpuCall& call : step.calls) {
    const double own = time_of(call, sizes, target);
    const bool library = std::holds_alternative<ProductCall>(call) && own > 0;
    time += library && follows ? own - kFollowing : own;
    follows |= library;
  }
  return time;
}

}  // namespace redfuser::codegen
