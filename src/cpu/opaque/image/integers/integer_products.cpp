#include "cpu/opaque/image/integers/integer_products.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/image/depthwise.h"
#include "cpu/opaque/image/integers/byte_channels.h"
#include "cpu/opaque/image/integers/integer_conv.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/simd/integers/integer_gemm.h"

// Products that the integer kernels do not take run in floats, which hold their sums exactly.
namespace redfuser::cpu {
namespace {

// The element of a per-tensor or per-axis parameter.
double parameter(const ChargedVector<double>& values, int64_t index) {
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(index)];
}

// The zero points of input `input`, which input `zero_point` (which may be absent) has; several run
// along the axis of the view.
ChargedVector<double> zeros_of(const OpaqueCall& call, int input, int zero_point,
                               const AxisView& view) {
  if (!call.has_input(zero_point)) return {0};
  ChargedVector<double> zeros = call.reals_of(zero_point);
  if (zeros.size() != 1 && static_cast<int64_t>(zeros.size()) != view.size) {
    call.fail(fmt::format("zero point {} does not fit {}", describe(call.tensor(zero_point)),
                          describe(call.tensor(input))));
  }
  return zeros;
}

// Input `input` as floats T less its zero points.
template <typename T>
Tensor centered(const OpaqueCall& call, int input, int zero_point, int axis) {
  const Tensor& x = call.tensor(input);
  const AxisView view = around_axis(x.dims(), axis);
  const ChargedVector<double> zeros = zeros_of(call, input, zero_point, view);
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

// Bytes less their zero points as floats, in parallel.
Tensor centered_bytes(const OpaqueCall& call, int input, int zero_point, int axis) {
  constexpr int64_t kPart = 2048;
  const Tensor& x = call.tensor(input);
  const AxisView view = around_axis(x.dims(), axis);
  const ChargedVector<double> zeros = zeros_of(call, input, zero_point, view);
  const KernelTable& table = kernels();
  const ConvertFn load = table.load[static_cast<int>(x.dtype())];
  const ConvertFn convert = table.convert[static_cast<int>(Elem::F32)][static_cast<int>(Elem::I32)];
  const BinaryFn subtract =
      table.binary[static_cast<int>(Elem::F32)][static_cast<int>(BinaryOp::Sub)]
                  [static_cast<int>(Mode::VS)];
  Tensor result(DType::Float32, x.dims());
  auto* to = result.as<float>();
  const auto* from = static_cast<const uint8_t*>(x.data());
  const int64_t lines = view.inner == 0 ? 0 : x.size() / view.inner;
  call.threads().parallel_for(lines, [&](int64_t line, int) {
    const auto zero = static_cast<float>(parameter(zeros, line % view.size));
    for (int64_t i = 0; i < view.inner; i += kPart) {
      const int64_t count = std::min(kPart, view.inner - i), at = line * view.inner + i;
      load(count, to + at, from + at);
      convert(count, to + at, to + at);
      if (zero != 0) subtract(1, count, to + at, count, {to + at, count}, {&zero, 0});
    }
  });
  return result;
}

// Sums of floats that are whole numbers, in the place of those of int32.
class WholeSums final : public SumsTarget {
 public:
  explicit WholeSums(SumsTarget& target) : target_(target) {}

  int64_t near_sums() const override { return target_.near_sums(); }
  Place place(int worker, const Block& block) override { return target_.place(worker, block); }
  void done(int worker, const Block& block, const Place& place) override {
    const ConvertFn convert =
        kernels().convert[static_cast<int>(Elem::I32)][static_cast<int>(Elem::F32)];
    for (int64_t i = 0; i < block.filters; ++i) {
      char* row = static_cast<char*>(place.data) + i * place.stride * int64_t{sizeof(float)};
      convert(block.positions, row, row);
    }
    target_.done(worker, block, place);
  }

 private:
  SumsTarget& target_;
};

// Σ (x − x_zero) · (w − w_zero) of bytes to `target`, by floats that hold the sums.
void convolve_few(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                  int w_zero, SumsTarget& target) {
  const Tensor weights = centered<float>(call, w, w_zero, 0);
  WholeSums sums(target);
  const bool one_zero = !call.has_input(x_zero) || call.tensor(x_zero).size() == 1;
  if (shape.groups == shape.channels && one_zero) {
    const int64_t zero = call.has_input(x_zero) ? call.integer_of(x_zero) : 0;
    return convolve_depthwise_bytes(shape, call.tensor(x), zero, weights.as<float>(), sums,
                                    call.threads());
  }
  const Tensor input = centered_bytes(call, x, x_zero, 1);
  convolve<float>(shape, input.as<float>(), weights.as<float>(), nullptr, sums, call.threads());
}

// The same of any integers, by floats T.
template <typename T>
void convolve_centered(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                       int w_zero, SumsTarget& target) {
  const Tensor input = centered<T>(call, x, x_zero, 1), weights = centered<T>(call, w, w_zero, 0);
  Tensor sums(input.dtype(), shape.window.dims(shape.batch, shape.filters, shape.window.output));
  const int64_t pixels = count_of(shape.window.output);
  PlainSums plain(sums.mutable_data(), sizeof(T), shape.filters, pixels);
  convolve<T>(shape, input.as<T>(), weights.as<T>(), nullptr, plain, call.threads());
  call.threads().parallel_for(shape.batch * shape.filters, [&](int64_t i, int worker) {
    const SumsTarget::Block row{i / shape.filters, i % shape.filters, 0, 1, pixels};
    const SumsTarget::Place place = target.place(worker, row);
    const T* from = sums.as<T>() + i * pixels;
    auto* to = static_cast<int32_t*>(place.data);
    for (int64_t j = 0; j < pixels; ++j) to[j] = static_cast<int32_t>(from[j]);
    target.done(worker, row, place);
  });
}

}  // namespace

void convolve_bytes(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                    int w_zero, SumsTarget& target) {
  if (convolve_integers(call, shape, x, x_zero, w, w_zero, target)) return;
  if (convolve_byte_channels(call, shape, x, x_zero, w, w_zero, target)) return;
  // Sums of products of differences of bytes, below 2^16 each, up to 2^24.
  const int64_t terms = call.dims(w)[0] == 0 ? 0 : call.tensor(w).size() / call.dims(w)[0];
  const bool bytes = size_of(call.tensor(x).dtype()) == 1 && size_of(call.tensor(w).dtype()) == 1;
  if (bytes && terms <= 256) {
    convolve_few(call, shape, x, x_zero, w, w_zero, target);
  } else {
    convolve_centered<double>(call, shape, x, x_zero, w, w_zero, target);
  }
}

void run_conv_integer(OpaqueCall& call) {
  const ConvShape shape = make_conv_shape(call, 0, 1);
  const Size3& size = shape.window.output;
  Tensor& y = call.allocate(0, shape.window.dims(shape.batch, shape.filters, size));
  PlainSums sums(y.mutable_data(), sizeof(int32_t), shape.filters, count_of(size));
  convolve_bytes(call, shape, 0, 2, 1, 3, sums);
}

}  // namespace redfuser::cpu
