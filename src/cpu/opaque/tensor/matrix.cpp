// Determinants, running products and reinterpretation.
#include <cmath>
#include <cstring>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

// Elimination with partial pivoting, in place.
double determinant(ChargedVector<double>& a, int64_t n) {
  double result = 1;
  const auto at = [&](int64_t r, int64_t c) -> double& {
    return a[static_cast<size_t>(r * n + c)];
  };
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t r = k + 1; r < n; ++r) {
      if (std::fabs(at(r, k)) > std::fabs(at(pivot, k))) pivot = r;
    }
    if (at(pivot, k) == 0) return 0;
    if (pivot != k) {
      for (int64_t c = 0; c < n; ++c) std::swap(at(k, c), at(pivot, c));
      result = -result;
    }
    result *= at(k, k);
    for (int64_t r = k + 1; r < n; ++r) {
      const double factor = at(r, k) / at(k, k);
      for (int64_t c = k; c < n; ++c) at(r, c) -= factor * at(k, c);
    }
  }
  return result;
}

}  // namespace

void run_det(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const Dims dims(x.dims().begin(), x.dims().end() - 2);
  const int64_t n = x.dims().back();
  Tensor& y = call.allocate(0, dims);
  const ChargedVector<double> values = call.reals_of(0);
  dispatch(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t m = 0; m < y.size(); ++m) {
      ChargedVector<double> matrix(values.begin() + m * n * n, values.begin() + (m + 1) * n * n);
      y.as<T>()[m] = static_cast<T>(determinant(matrix, n));
    }
  });
}

void run_cumprod(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const std::vector<int64_t> axis = call.integers_of(1);
  if (axis.size() != 1) call.fail("the axis input must have one element");
  const AxisView view =
      around_axis(x.dims(), call.axis(axis[0], static_cast<int>(x.dims().size())));
  const bool exclusive = call.integer("exclusive", 0) != 0;
  const bool reverse = call.integer("reverse", 0) != 0;
  Tensor& y = call.allocate(0, x.dims());
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using A = Arithmetic<T>;
    for (int64_t line = 0; line < view.outer * view.inner; ++line) {
      const int64_t base = line / view.inner * view.size * view.inner + line % view.inner;
      A total = static_cast<A>(1);
      for (int64_t i = 0; i < view.size; ++i) {
        const int64_t at = base + (reverse ? view.size - 1 - i : i) * view.inner;
        const A next = wrapping_product(total, static_cast<A>(x.as<T>()[at]));
        y.as<T>()[at] = static_cast<T>(exclusive ? total : next);
        total = next;
      }
    }
  });
}

void run_bit_cast(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  Tensor& y = call.allocate(0, x.dims());
  if (x.dtype() == DType::Bool || y.dtype() == DType::Bool) {
    for (int64_t i = 0; i < x.size(); ++i) y.as<uint8_t>()[i] = x.as<uint8_t>()[i] != 0;
    return;
  }
  if (x.bytes() > 0) std::memcpy(y.mutable_data(), x.data(), x.bytes());
  // Elements below 8 bits are held as numbers: the sign is that of the result's type.
  const int bits = bits_of(y.dtype());
  if (bits >= 8) return;
  const bool is_signed = y.dtype() == DType::Int4 || y.dtype() == DType::Int2;
  const int mask = (1 << bits) - 1, sign = is_signed ? 1 << (bits - 1) : 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    y.as<int8_t>()[i] = static_cast<int8_t>(((y.as<uint8_t>()[i] & mask) ^ sign) - sign);
  }
}

}  // namespace redfuser::cpu
