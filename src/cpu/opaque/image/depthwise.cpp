#include "cpu/opaque/image/depthwise.h"

#include <memory>

#include "cpu/opaque/image/plane.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {

template <typename T>
void convolve_depthwise(const ConvShape& s, const T* x, const T* weights, const T* bias, T* y,
                        ThreadPool& pool) {
  const Window& w = s.window;
  PaddedPlane padded(w);
  int64_t in = count_of(w.input), out = count_of(w.output), taps = count_of(w.kernel);
  int64_t multiplier = s.filters / s.channels, slice = w.output[1] * w.output[2];
  std::vector<ScratchArray<T>> buffers(pool.size());
  pool.parallel_for(s.batch * s.channels, [&](int64_t plane, int worker) {
    ScratchArray<T>& buffer = buffers[worker];
    if (!buffer) {
      buffer = scratch<T>(padded.size());
      std::fill_n(buffer.get(), padded.size(), T(0));
    }
    padded.fill(w, x + plane * in, buffer.get());
    cpu::FilterArgs args;
    args.rows = w.output[1];
    args.cols = w.output[2];
    args.taps = taps;
    args.offsets = padded.offsets.data();
    args.in_stride = w.stride[1] * padded.line_size();
    args.out_stride = w.output[2];
    for (int64_t m = 0; m < multiplier; ++m) {
      int64_t filter = plane % s.channels * multiplier + m;
      args.weights = weights + filter * taps;
      args.bias = bias == nullptr ? 0 : static_cast<double>(bias[filter]);
      for (int64_t d = 0; d < w.output[0]; ++d) {
        args.in = buffer.get() + padded.base(w, d, 0);
        args.out = y + (plane * multiplier + m) * out + d * slice;
        (std::is_same_v<T, float> ? cpu::kernels().filter_f32 : cpu::kernels().filter_f64)(args);
      }
    }
  });
}

template void convolve_depthwise<float>(const ConvShape&, const float*, const float*, const float*,
                                        float*, ThreadPool&);
template void convolve_depthwise<double>(const ConvShape&, const double*, const double*,
                                         const double*, double*, ThreadPool&);

}  // namespace redfuser::cpu
