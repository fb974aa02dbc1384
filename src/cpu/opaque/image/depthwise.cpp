#include "cpu/opaque/image/depthwise.h"

#include <algorithm>
#include <type_traits>

#include "cpu/opaque/image/channel.h"

namespace redfuser::cpu {

namespace {

// The channels of a block: as many as stay in the first-level cache.
int64_t block_channels(const ConvShape& s) {
  const int64_t sums = s.filters / s.channels * count_of(s.window.output);
  return std::clamp<int64_t>(kDepthwiseSums / sums, 1, s.channels);
}

// What a filter reads.
struct Image {
  const char* data;
  int64_t width;  // bytes of an element
  FilterFn filter;
  float zero = 0;
};

template <typename T>
void convolve_planes(const ConvShape& s, const Image& image, const T* weights, const T* bias,
                     SumsTarget& sums, ThreadPool& pool) {
  const Window w = with_long_lines(s.window);
  const int64_t in = count_of(w.input), out = count_of(w.output), taps = count_of(w.kernel);
  const int64_t filters = s.filters / s.channels, planes = s.batch * s.channels;
  const int64_t most = block_channels(s);
  const PaddedChannel channel(w, filters);
  const int64_t tasks = depthwise_tasks(planes, pool.size());
  std::vector<ScratchArray<T>> buffers(static_cast<size_t>(pool.size()));
  pool.parallel_for(tasks, [&](int64_t task, int worker) {
    ScratchArray<T>& buffer = buffers[static_cast<size_t>(worker)];
    if (!buffer) {
      buffer = scratch<T>(channel.size() + channel.sums() + w.input[2] + kFilterSlack);
      std::fill_n(buffer.get(), channel.size(), T(0));
    }
    ChannelArgs args = channel.args;
    args.padded = buffer.get();
    args.sums = buffer.get() + channel.size();
    args.line = buffer.get() + channel.size() + channel.sums();
    args.zero = image.zero;
    if (!sums.activation().adds) args.activation = sums.activation();
    const int64_t end = planes * (task + 1) / tasks;
    for (int64_t plane = planes * task / tasks, last; plane < end; plane = last) {
      const int64_t channel = plane % s.channels;
      last = std::min({end, plane + most, plane - channel + s.channels});
      const SumsTarget::Block block{plane / s.channels, channel * filters, 0,
                                    (last - plane) * filters, out};
      SumsTarget::Place place = sums.place(worker, block);
      place.activated = args.activation.any;
      for (int64_t i = 0; i < last - plane; ++i) {
        const int64_t first = (channel + i) * filters;
        args.weights = weights + first * taps;
        args.bias = bias == nullptr ? nullptr : bias + first;
        args.in = image.data + (plane + i) * in * image.width;
        args.out = static_cast<T*>(place.data) + i * filters * out;
        image.filter(args);
      }
      sums.done(worker, block, place);
    }
  });
}

}  // namespace

template <typename T>
void convolve_depthwise(const ConvShape& s, const T* x, const T* weights, const T* bias,
                        SumsTarget& sums, ThreadPool& pool) {
  const auto filter = std::is_same_v<T, float> ? kernels().filter_f32 : kernels().filter_f64;
  const Image image{reinterpret_cast<const char*>(x), sizeof(T), filter};
  convolve_planes(s, image, weights, bias, sums, pool);
}

void convolve_depthwise_bytes(const ConvShape& s, const Tensor& x, int64_t zero,
                              const float* weights, SumsTarget& sums, ThreadPool& pool) {
  const bool is_signed = x.dtype() == DType::Int8;
  const Image image{static_cast<const char*>(x.data()), 1,
                    is_signed ? kernels().filter_i8 : kernels().filter_u8,
                    static_cast<float>(zero)};
  convolve_planes<float>(s, image, weights, nullptr, sums, pool);
}

template void convolve_depthwise<float>(const ConvShape&, const float*, const float*, const float*,
                                        SumsTarget&, ThreadPool&);
template void convolve_depthwise<double>(const ConvShape&, const double*, const double*,
                                         const double*, SumsTarget&, ThreadPool&);

}  // namespace redfuser::cpu
