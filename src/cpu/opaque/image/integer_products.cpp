#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/image/conv.h"
#include "cpu/opaque/image/integer_conv.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/simd/integers/integer_gemm.h"

// Products that the integer kernels do not take run in floats, which hold their sums exactly.
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

// Input `input` as floats T with the zero point of input `zero_point` (which may be absent)
// subtracted; a zero point of several elements runs along `axis`.
template <typename T>
Tensor centered(const OpaqueCall& call, int input, int zero_point, int axis) {
  const Tensor& x = call.tensor(input);
  ChargedVector<double> zeros{0};
  if (call.has_input(zero_point)) zeros = call.reals_of(zero_point);
  AxisView view = around_axis(x.dims(), axis);
  if (zeros.size() != 1 && static_cast<int64_t>(zeros.size()) != view.size) {
    call.fail(fmt::format("zero point {} does not fit {}", describe(call.tensor(zero_point)),
                          describe(x)));
  }
  Tensor result(sizeof(T) == 4 ? DType::Float32 : DType::Float64, x.dims());
  T* target = result.as<T>();
  dispatch(x.dtype(), [&](auto tag) {
    using Stored = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.size(); i += view.inner) {
      const T zero = static_cast<T>(parameter(zeros, i / view.inner % view.size));
      for (int64_t j = i; j < i + view.inner; ++j)
        target[j] = static_cast<T>(x.as<Stored>()[j]) - zero;
    }
  });
  return result;
}

// Calls finish with every row of Σ (x − x_zero) · (w − w_zero), by floats T that hold the sums.
template <typename T>
void convolve_centered(OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                       int w_zero, const std::function<void(const SumRow&)>& finish) {
  const Tensor input = centered<T>(call, x, x_zero, 1), weights = centered<T>(call, w, w_zero, 0);
  Tensor sums(input.dtype(), shape.window.dims(shape.batch, shape.filters, shape.window.output));
  const int64_t pixels = count_of(shape.window.output);
  PlainSums target(sums.mutable_data(), sizeof(T), shape.filters, pixels);
  convolve<T>(shape, input.as<T>(), weights.as<T>(), nullptr, target, call.threads());
  parallel_ranges(call.threads(), shape.batch * shape.filters, 1, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> row(static_cast<size_t>(pixels));
    for (int64_t i = begin; i < end; ++i) {
      const T* from = sums.as<T>() + i * pixels;
      for (int64_t j = 0; j < pixels; ++j)
        row[static_cast<size_t>(j)] = static_cast<int32_t>(from[j]);
      finish({i / shape.filters, i % shape.filters, 0, pixels, row.data(), 0});
    }
  });
}

// The rows of a convolution's sums, by the integer kernels where they take it.
void convolve_rows(OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w, int w_zero,
                   const std::function<void(const SumRow&)>& finish) {
  if (convolve_integers(call, shape, x, x_zero, w, w_zero, finish)) return;
  // Sums of products of differences of bytes, below 2^16 each, up to 2^24.
  const int64_t terms = call.dims(w)[0] == 0 ? 0 : call.tensor(w).size() / call.dims(w)[0];
  const bool bytes = size_of(call.tensor(x).dtype()) == 1 && size_of(call.tensor(w).dtype()) == 1;
  if (bytes && terms <= 256) {
    convolve_centered<float>(call, shape, x, x_zero, w, w_zero, finish);
  } else {
    convolve_centered<double>(call, shape, x, x_zero, w, w_zero, finish);
  }
}

}  // namespace

void run_conv_integer(OpaqueCall& call) {
  const ConvShape shape = make_conv_shape(call, 0, 1);
  const Size3& size = shape.window.output;
  int32_t* y = call.allocate(0, shape.window.dims(shape.batch, shape.filters, size)).as<int32_t>();
  convolve_rows(call, shape, 0, 2, 1, 3, [&](const SumRow& row) {
    int32_t* to = y + (row.batch * shape.filters + row.filter) * count_of(size) + row.pixel;
    const auto base = static_cast<uint32_t>(row.base);
    for (int64_t j = 0; j < row.count; ++j) {
      to[j] = static_cast<int32_t>(static_cast<uint32_t>(row.c[j]) + base);
    }
  });
}

void run_qlinear_conv(OpaqueCall& call) {
  const ConvShape shape = make_conv_shape(call, 0, 3);
  const Size3& size = shape.window.output;
  const ChargedVector<double> w_scale = parameters_of(call, 4, shape.filters);
  std::vector<int64_t> bias{0};
  if (call.has_input(8)) {
    parameters_of(call, 8, shape.filters);
    bias = call.integers_of(8);
  }
  const double scale = call.real_of(1) / call.real_of(6);
  const double zero = call.has_input(7) ? call.real_of(7) : 0;
  Tensor& y = call.allocate(0, shape.window.dims(shape.batch, shape.filters, size));
  if (y.dtype() != DType::Int8 && y.dtype() != DType::UInt8) {
    call.fail("output is not of an 8-bit integer dtype");
  }
  const double low = y.dtype() == DType::Int8 ? -128 : 0;
  auto* bytes = static_cast<uint8_t*>(y.mutable_data());
  convolve_rows(call, shape, 0, 2, 3, 5, [&](const SumRow& row) {
    const auto own = static_cast<uint32_t>(bias[bias.size() == 1 ? 0 : row.filter]);
    IntegerQuantizeArgs q;
    q.count = row.count;
    q.c = row.c;
    q.bias = static_cast<int32_t>(static_cast<uint32_t>(row.base) + own);
    q.scale = scale * parameter(w_scale, row.filter);
    q.zero = zero;
    q.low = low;
    q.high = low + 255;
    q.out = bytes + (row.batch * shape.filters + row.filter) * count_of(size) + row.pixel;
    integer_kernels().quantize(q);
  });
}

}  // namespace redfuser::cpu
