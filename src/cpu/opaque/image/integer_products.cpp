#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/image/conv.h"
#include "cpu/opaque/opaque_gemm.h"
#include "cpu/opaque/opaque_kernels.h"

// Integer products run in float64, which holds sums of 8-bit products exactly.
namespace redfuser::cpu {
namespace {

// Input `input`, which is per tensor or has `count` elements.
ChargedVector<double> parameters_of(const OpaqueCall& call, int input, int64_t count) {
  const int64_t given = call.tensor(input).size();
  if (given != 1 && given != count) {
    call.fail(fmt::format("input {} is {}, not one number or {}", input,
                          describe(call.tensor(input)), count));
  }
  return call.reals_of(input);
}

// The element of a per-tensor or per-axis parameter.
double parameter(const ChargedVector<double>& values, int64_t index) {
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(index)];
}

// Input `input` as float64 with the zero point of input `zero_point` (which may be absent)
// subtracted; a zero point of several elements runs along `axis`.
Tensor centered(const OpaqueCall& call, int input, int zero_point, int axis) {
  const Tensor& x = call.tensor(input);
  ChargedVector<double> zeros{0};
  if (call.has_input(zero_point)) zeros = call.reals_of(zero_point);
  AxisView view = around_axis(x.dims(), axis);
  if (zeros.size() != 1 && static_cast<int64_t>(zeros.size()) != view.size) {
    call.fail(fmt::format("zero point {} does not fit {}", describe(call.tensor(zero_point)),
                          describe(x)));
  }
  Tensor result(DType::Float64, x.dims());
  double* target = result.as<double>();
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.size(); ++i) {
      target[i] = static_cast<double>(x.as<T>()[i]) - parameter(zeros, i / view.inner % view.size);
    }
  });
  return result;
}

// Rounds half to even, adds the zero point and saturates to T. NaN becomes the zero point.
template <typename T>
T quantized(double value, double zero_point) {
  double rounded = std::isnan(value) ? zero_point : std::nearbyint(value) + zero_point;
  return static_cast<T>(std::clamp(rounded, static_cast<double>(std::numeric_limits<T>::lowest()),
                                   static_cast<double>(std::numeric_limits<T>::max())));
}

// acc[batch, filters, pixels] of centred inputs `x` and `w`.
Tensor convolve_centered(OpaqueCall& call, int x, int x_zero, int w, int w_zero, ConvShape& shape) {
  shape = make_conv_shape(call, x, w);
  Tensor input = centered(call, x, x_zero, 1), weights = centered(call, w, w_zero, 0);
  Tensor sums(DType::Float64, shape.window.dims(shape.batch, shape.filters, shape.window.output));
  convolve<double>(shape, input.as<double>(), weights.as<double>(), nullptr, sums.as<double>(),
                   call.threads());
  return sums;
}

// Quantises sums[i] * factor(i) to output 0.
template <typename Factor>
void requantize(OpaqueCall& call, const Tensor& sums, double zero, const Factor& factor) {
  Tensor& y = call.allocate(0, sums.dims());
  dispatch(y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_integral_v<T>) {
      for (int64_t i = 0; i < sums.size(); ++i) {
        y.as<T>()[i] = quantized<T>(sums.as<double>()[i] * factor(i), zero);
      }
    } else {
      call.fail("output is not of an integer dtype");
    }
  });
}

// The offset of batch entry `batch` of the broadcast shape `common` in a tensor of `dims`, whose
// last two dimensions are the matrix.
int64_t batch_offset(const Dims& dims, const Dims& common, int64_t batch) {
  int64_t offset = 0, stride = dims[dims.size() - 1] * dims[dims.size() - 2];
  for (size_t i = 3; i <= common.size(); ++i) {
    int64_t size = common[common.size() - i], at = batch % size;
    batch /= size;
    if (i > dims.size()) continue;
    if (dims[dims.size() - i] != 1) offset += at * stride;
    stride *= dims[dims.size() - i];
  }
  return offset;
}

Dims broadcast_batch(const OpaqueCall& call, const Dims& a, const Dims& b) {
  size_t rank = std::max(a.size(), b.size());
  Dims common(rank, 1);
  for (size_t i = 3; i <= rank; ++i) {
    int64_t left = i <= a.size() ? a[a.size() - i] : 1, right = i <= b.size() ? b[b.size() - i] : 1;
    if (left != right && left != 1 && right != 1) call.fail("batch dimensions do not broadcast");
    common[rank - i] = left == 1 ? right : left;
  }
  return common;
}

}  // namespace

void run_conv_integer(OpaqueCall& call) {
  ConvShape shape;
  Tensor sums = convolve_centered(call, 0, 2, 1, 3, shape);
  int32_t* y = call.allocate(0, sums.dims()).as<int32_t>();
  for (int64_t i = 0; i < sums.size(); ++i) y[i] = static_cast<int32_t>(sums.as<double>()[i]);
}

void run_qlinear_conv(OpaqueCall& call) {
  ConvShape shape;
  Tensor sums = convolve_centered(call, 0, 2, 3, 5, shape);
  ChargedVector<double> bias(1, 0), w_scale = parameters_of(call, 4, shape.filters);
  if (call.has_input(8)) bias = parameters_of(call, 8, shape.filters);
  double scale = call.real_of(1) / call.real_of(6);
  int64_t pixels = count_of(shape.window.output);
  double* sum = sums.as<double>();
  for (int64_t i = 0; i < sums.size(); ++i) sum[i] += parameter(bias, i / pixels % shape.filters);
  double zero = call.has_input(7) ? call.real_of(7) : 0;
  requantize(call, sums, zero,
             [&](int64_t i) { return scale * parameter(w_scale, i / pixels % shape.filters); });
}

void run_qlinear_matmul(OpaqueCall& call) {
  const Dims &a_dims = call.dims(0), &b_dims = call.dims(3);
  if (a_dims.size() < 2 || b_dims.size() < 2 || a_dims.back() != b_dims[b_dims.size() - 2]) {
    call.fail("cannot multiply " + describe(call.tensor(0)) + " and " + describe(call.tensor(3)));
  }
  Tensor a = centered(call, 0, 2, static_cast<int>(a_dims.size()) - 2);
  Tensor b = centered(call, 3, 5, static_cast<int>(b_dims.size()) - 1);
  Dims dims = broadcast_batch(call, a_dims, b_dims);
  int64_t batches = element_count(dims);
  int64_t m = a_dims[a_dims.size() - 2], k = a_dims.back(), n = b_dims.back();
  dims[dims.size() - 2] = m;
  dims[dims.size() - 1] = n;
  Tensor sums(DType::Float64, dims);
  std::memset(sums.mutable_data(), 0, sums.bytes());
  call.threads().parallel_for(batches, [&](int64_t batch, int) {
    gemm_accumulate(m, n, k, a.as<double>() + batch_offset(a_dims, dims, batch), k, false,
                    b.as<double>() + batch_offset(b_dims, dims, batch), n,
                    sums.as<double>() + batch * m * n, n);
  });
  const ChargedVector<double> a_scale = parameters_of(call, 1, m),
                              b_scale = parameters_of(call, 4, n);
  double y_scale = call.real_of(6);
  requantize(call, sums, call.real_of(7), [&](int64_t i) {
    return parameter(a_scale, i / n % m) * parameter(b_scale, i % n) / y_scale;
  });
}

}  // namespace redfuser::cpu
