#include "cpu/opaque/image/depthwise.h"

#include <algorithm>
#include <type_traits>

#include "cpu/opaque/image/channel.h"

namespace redfuser::cpu {

template <typename T>
void convolve_depthwise(const ConvShape& s, const T* x, const T* weights, const T* bias, T* y,
                        ThreadPool& pool) {
  constexpr int64_t kTasks = 8;  // for each thread
  const Window w = with_long_lines(s.window);
  const int64_t in = count_of(w.input), out = count_of(w.output), taps = count_of(w.kernel);
  const int64_t filters = s.filters / s.channels, planes = s.batch * s.channels;
  const PaddedChannel channel(w, filters);
  const auto filter = std::is_same_v<T, float> ? kernels().filter_f32 : kernels().filter_f64;
  const int64_t tasks = std::min(planes, kTasks * pool.size());
  std::vector<ScratchArray<T>> buffers(static_cast<size_t>(pool.size()));
  pool.parallel_for(tasks, [&](int64_t task, int worker) {
    ScratchArray<T>& buffer = buffers[static_cast<size_t>(worker)];
    if (!buffer) {
      buffer = scratch<T>(channel.size() + channel.sums());
      std::fill_n(buffer.get(), channel.size(), T(0));
    }
    ChannelArgs args = channel.args;
    args.padded = buffer.get();
    args.sums = buffer.get() + channel.size();
    for (int64_t plane = planes * task / tasks; plane < planes * (task + 1) / tasks; ++plane) {
      const int64_t first = plane % s.channels * filters;
      args.weights = weights + first * taps;
      args.bias = bias == nullptr ? nullptr : bias + first;
      args.in = x + plane * in;
      args.out = y + plane * filters * out;
      filter(args);
    }
  });
}

template void convolve_depthwise<float>(const ConvShape&, const float*, const float*, const float*,
                                        float*, ThreadPool&);
template void convolve_depthwise<double>(const ConvShape&, const double*, const double*,
                                         const double*, double*, ThreadPool&);

}  // namespace redfuser::cpu
