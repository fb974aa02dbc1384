#include "codegen/product/library_time.h"

#include <algorithm>
#include <cmath>

namespace redfuser::codegen {
namespace {

double count(ir::Expr size, const KnownSizes& sizes, double otherwise = 1) {
  return size == nullptr ? otherwise : static_cast<double>(std::max<int64_t>(sizes.of(size), 0));
}

// Whether elements are adjacent neither along rows nor along columns.
bool ragged(const ProductCall& call, const KnownSizes& sizes) {
  constexpr int64_t kUnit = 8;
  if (size_of(call.dtype) != 2) return false;
  return sizes.of(call.n) % kUnit != 0 || sizes.of(call.k) % kUnit != 0;
}

// The side of a tile for a matrix of so many rows or columns.
double tile_of(double size) {
  constexpr double kSmallest = 32, kLargest = 128;
  return std::clamp(std::exp2(std::ceil(std::log2(size))), kSmallest, kLargest);
}

double product_time(const ProductCall& call, const KnownSizes& sizes, const Target& target) {
  constexpr double kFill = 2, kRagged = 3;
  const double batch = count(call.batch, sizes), m = count(call.m, sizes), n = count(call.n, sizes),
               k = count(call.k, sizes);
  if (batch * m * n == 0) return 0;
  const bool tensor = size_of(call.dtype) == 2 || target.tf32;
  const double rate = tensor ? target.tensor_rate(call.dtype) : 0.7 * target.scalar_rate();
  // Few tiles leave multiprocessors without work, unless k is divided among them.
  const double height = tile_of(m), width = tile_of(n);
  const double tiles = batch * std::ceil(m / height) * std::ceil(n / width);
  const double waves = std::ceil(tiles / target.multiprocessors);
  const double split = std::clamp(
      k / 512, 1.0, target.multiprocessors / std::min<double>(tiles, target.multiprocessors));
  const double busy = std::min(1.0, tiles * split / (waves * target.multiprocessors));
  const double padded = 2 * tiles * height * width * k;
  const auto bytes = static_cast<double>(size_of(call.dtype));
  const double once = call.b_batch != nullptr && call.b_batch->is_constant(0) ? 1 : batch;
  const double memory = (batch * m * k + once * k * n) * bytes +
                        batch * m * n * static_cast<double>(size_of(call.result));
  const double product = std::max(padded / rate / busy, memory / target.dram_rate);
  return select::kLaunchTime + kFill + product * (ragged(call, sizes) ? kRagged : 1);
}

}  // namespace

double time_of(const GpuCall& call, const KnownSizes& sizes, const Target& target) {
  if (const auto* product = std::get_if<ProductCall>(&call)) {
    return product_time(*product, sizes, target);
  }
  const auto& launch = std::get<KernelLaunch>(call);
  return sizes.of(launch.grid[0]) == 0 ? 0 : launch.time;
}

}  // namespace redfuser::codegen
