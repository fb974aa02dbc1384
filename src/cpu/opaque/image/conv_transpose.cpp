#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/image/window.h"
#include "cpu/opaque/opaque_gemm.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

struct TransposedShape {
  int64_t batch, channels, filters, groups;  // filters per group
  Window window;
};

TransposedShape make_shape(const OpaqueCall& call) {
  const Dims &input = call.dims(0), &kernel = call.dims(1);
  if (input.size() != kernel.size() || input.size() < 3) {
    call.fail(fmt::format("input {} and weights {} must have the same rank, at least 3",
                          describe(call.tensor(0)), describe(call.tensor(1))));
  }
  int64_t groups = call.integer("group", 1);
  if (groups <= 0 || input[1] != kernel[0] || input[1] % groups != 0) {
    call.fail(fmt::format("group {} does not fit {} input channels and weights {}", groups,
                          input[1], describe(call.tensor(1))));
  }
  return {input[0], input[1], kernel[1], groups,
          make_transposed_window(call, std::span(input).subspan(2), std::span(kernel).subspan(2))};
}

// Adds the contributions of one filter, columns[tap, input pixel], to its output plane.
template <typename T>
void scatter_columns(const Window& w, const T* columns, T* plane) {
  int64_t pixels = count_of(w.input);
  for (int64_t tap = 0; tap < count_of(w.kernel); ++tap, columns += pixels) {
    int64_t kd = tap / (w.kernel[1] * w.kernel[2]), kh = tap / w.kernel[2] % w.kernel[1];
    int64_t kw = tap % w.kernel[2];
    const T* source = columns;
    for (int64_t d = 0; d < w.input[0]; ++d) {
      int64_t od = d * w.stride[0] + kd * w.dilation[0] - w.pad_begin[0];
      for (int64_t h = 0; h < w.input[1]; ++h, source += w.input[2]) {
        int64_t oh = h * w.stride[1] + kh * w.dilation[1] - w.pad_begin[1];
        if (od < 0 || od >= w.output[0] || oh < 0 || oh >= w.output[1]) continue;
        T* line = plane + (od * w.output[1] + oh) * w.output[2];
        int64_t offset = kw * w.dilation[2] - w.pad_begin[2];
        for (int64_t c = 0; c < w.input[2]; ++c) {
          int64_t oc = c * w.stride[2] + offset;
          if (oc >= 0 && oc < w.output[2]) line[oc] += source[c];
        }
      }
    }
  }
}

template <typename T>
void convolve_transposed(const TransposedShape& s, const T* x, const T* weights, const T* bias,
                         T* y, ThreadPool& pool) {
  const Window& w = s.window;
  int64_t channels = s.channels / s.groups, taps = count_of(w.kernel);
  int64_t in = count_of(w.input), out = count_of(w.output), images = s.batch * s.groups;
  int64_t blocks =
      std::clamp<int64_t>((2 * pool.size() + images - 1) / std::max<int64_t>(images, 1), 1,
                          std::max<int64_t>(s.filters, 1));
  int64_t block = (s.filters + blocks - 1) / blocks;
  pool.parallel_for(images * blocks, [&](int64_t task, int) {
    int64_t image = task / blocks, group = image % s.groups;
    int64_t filter = task % blocks * block, count = std::min(block, s.filters - filter);
    if (count <= 0) return;
    const int64_t size = element_count({count, taps, in});
    auto columns = scratch<T>(size);
    std::fill_n(columns.get(), size, T(0));
    // columns[filter, tap, pixel] = Σ_c w[c, filter, tap] · x[c, pixel]
    gemm_accumulate(count * taps, in, channels,
                    weights + (group * channels * s.filters + filter) * taps, s.filters * taps,
                    true, x + image * channels * in, in, columns.get(), in);
    for (int64_t f = 0; f < count; ++f) {
      T* plane = y + (image * s.filters + filter + f) * out;
      std::fill(plane, plane + out, bias == nullptr ? T(0) : bias[group * s.filters + filter + f]);
      scatter_columns(w, columns.get() + f * taps * in, plane);
    }
  });
}

}  // namespace

void run_conv_transpose(OpaqueCall& call) {
  TransposedShape shape = make_shape(call);
  Tensor x = call.widened(0), w = call.widened(1);
  Tensor bias = call.has_input(2) ? call.widened(2) : Tensor();
  int64_t filters = shape.filters * shape.groups;
  if (bias.defined() && bias.size() != filters) {
    call.fail(fmt::format("bias {} for {} filters", describe(bias), filters));
  }
  Tensor y(x.dtype(), shape.window.dims(shape.batch, filters, shape.window.output));
  auto run = [&]<typename T>(TypeTag<T>) {
    convolve_transposed<T>(shape, x.as<T>(), w.as<T>(), bias.as<T>(), y.as<T>(), call.threads());
  };
  if (x.dtype() == DType::Float32) {
    run(TypeTag<float>{});
  } else if (x.dtype() == DType::Float64) {
    run(TypeTag<double>{});
  } else {
    call.fail("input " + describe(x) + " is not floating");
  }
  call.set(0, std::move(y));
}

}  // namespace redfuser::cpu
