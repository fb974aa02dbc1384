#include "cpu/opaque/image/conv.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "cpu/opaque/image/depthwise.h"
#include "cpu/opaque/image/im2col.h"
#include "cpu/opaque/opaque_gemm.h"

namespace redfuser::cpu {
bool is_pointwise(const Window& w) {
  return count_of(w.kernel) == 1 && count_of(w.stride) == 1 && w.output == w.input &&
         w.pad_begin == Size3{0, 0, 0};
}

namespace {

bool is_single(const Window& w, size_t i) {
  return w.input[i] == 1 && w.kernel[i] == 1 && w.output[i] == 1 && w.pad_begin[i] == 0;
}

// Dimension `from` in the place of `to`, which becomes a single one.
void move_dimension(Window& w, size_t from, size_t to) {
  for (Size3* size :
       {&w.input, &w.kernel, &w.stride, &w.dilation, &w.pad_begin, &w.pad_end, &w.output}) {
    std::swap((*size)[from], (*size)[to]);
  }
}

}  // namespace

Window with_long_lines(const Window& window) {
  Window w = window;
  if (is_pointwise(w)) {
    w.input = w.output = {1, 1, count_of(w.output)};
    return w;
  }
  for (int round = 0; round < 2; ++round) {
    for (const size_t i : {size_t{1}, size_t{0}}) {
      if (is_single(w, i + 1) && !is_single(w, i)) move_dimension(w, i, i + 1);
    }
  }
  return w;
}

namespace {

// Sizes of one image, which is one group of one batch entry, and its tensors.
template <typename T>
struct Convolution {
  const Window& window;
  ThreadPool& pool;
  int64_t images, groups, channels, filters;
  int64_t in, out, taps, depth;
  const T *x, *weights, *bias;
  SumsTarget& sums;

  // The same by blocks of filters whose sums stay near; of few filters, a product would wait for
  // its columns.
  void multiply_blocks(int worker, int64_t image, int64_t first, int64_t last, int64_t begin,
                       int64_t end, const T* columns, int64_t ld) const {
    constexpr int64_t kFewest = 48;
    const int64_t near = sums.near_sums(), count = last - first;
    const int64_t most = near == 0 ? count : std::max(near / (end - begin), kFewest);
    const int64_t blocks = std::max<int64_t>((count + most - 1) / most, 1);
    for (int64_t i = 0; i < blocks; ++i) {
      multiply(worker, image, first + count * i / blocks, first + count * (i + 1) / blocks, begin,
               end, columns, ld);
    }
  }

  // Output pixels [begin, end) of filters [first, last) from columns[depth, pixel].
  void multiply(int worker, int64_t image, int64_t first, int64_t last, int64_t begin, int64_t end,
                const T* columns, int64_t ld) const {
    const int64_t filter = image % groups * filters + first;
    const SumsTarget::Block block{image / groups, filter, begin, last - first, end - begin};
    const SumsTarget::Place place = sums.place(worker, block);
    T* result = static_cast<T*>(place.data);
    for (int64_t f = 0; f < last - first; ++f) {
      std::fill_n(result + f * place.stride, end - begin,
                  bias == nullptr ? T(0) : bias[filter + f]);
    }
    gemm_accumulate(last - first, end - begin, depth, weights + filter * depth, depth, false,
                    columns, ld, result, place.stride);
    sums.done(worker, block, place);
  }

  const T* planes(int64_t image) const { return x + image * channels * in; }
};

// Tasks are blocks of output pixels; each gathers its own columns.
template <typename T>
void convolve_by_pixels(const Convolution<T>& c, int64_t wanted_tasks) {
  constexpr int64_t kBufferBytes = 1 << 19;  // columns stay in the second-level cache
  constexpr int64_t kPanel = 32;             // pixels that the matrix product takes at a time
  int64_t column_bytes = std::max<int64_t>(c.depth * static_cast<int64_t>(sizeof(T)), 1);
  int64_t block = std::clamp<int64_t>(kBufferBytes / column_bytes / kPanel * kPanel, 64, 4096);
  // What follows finds the sums of a block in a near cache, where its weights stay in one as well.
  const int64_t near = c.sums.near_sums();
  if (c.filters * c.depth <= near) {
    block = std::min(block, std::max<int64_t>(near / c.filters / kPanel * kPanel, 64));
  }
  int64_t per_image = (wanted_tasks + c.images - 1) / c.images;
  int64_t fair = (c.out / per_image + kPanel - 1) / kPanel * kPanel;
  block = std::min({block, std::max<int64_t>(fair, 64), c.out});
  int64_t blocks = (c.out + block - 1) / block;
  bool pointwise = is_pointwise(c.window);
  std::vector<ScratchArray<T>> buffers(c.pool.size());
  c.pool.parallel_for(c.images * blocks, [&](int64_t task, int worker) {
    int64_t image = task / blocks, begin = task % blocks * block;
    int64_t end = std::min(begin + block, c.out);
    if (pointwise)
      return c.multiply_blocks(worker, image, 0, c.filters, begin, end, c.planes(image) + begin,
                               c.in);
    ScratchArray<T>& columns = buffers[worker];
    if (!columns) columns = scratch<T>(c.depth * block);
    for (int64_t channel = 0; channel < c.channels; ++channel) {
      gather_columns(c.window, c.planes(image) + channel * c.in, begin, end,
                     columns.get() + channel * c.taps * block, block);
    }
    c.multiply_blocks(worker, image, 0, c.filters, begin, end, columns.get(), block);
  });
}

// Few pixels: the columns of an image are gathered once, then tasks are blocks of filters.
template <typename T>
void convolve_by_filters(const Convolution<T>& c) {
  constexpr int64_t kRows = 16;
  int64_t blocks = std::clamp<int64_t>(c.filters / kRows, 1, 2 * c.pool.size());
  bool pointwise = is_pointwise(c.window);
  ScratchArray<T> columns;
  if (!pointwise) columns = scratch<T>(element_count({c.depth, c.out}));
  for (int64_t image = 0; image < c.images; ++image) {
    const T* planes = c.planes(image);
    if (!pointwise) {
      parallel_ranges(c.pool, c.channels, 8, [&](int64_t begin, int64_t end) {
        for (int64_t channel = begin; channel < end; ++channel) {
          gather_columns(c.window, planes + channel * c.in, 0, c.out,
                         columns.get() + channel * c.taps * c.out, c.out);
        }
      });
    }
    c.pool.parallel_for(blocks, [&](int64_t task, int worker) {
      c.multiply_blocks(worker, image, c.filters * task / blocks, c.filters * (task + 1) / blocks,
                        0, c.out, pointwise ? planes : columns.get(), c.out);
    });
  }
}

}  // namespace

template <typename T>
void convolve_columns(const ConvShape& s, const T* x, const T* weights, const T* bias,
                      SumsTarget& sums, ThreadPool& pool) {
  const Window& w = s.window;
  int64_t out = count_of(w.output);
  if (s.batch == 0 || s.filters == 0 || out == 0) return;
  int64_t channels = s.channels / s.groups, taps = count_of(w.kernel);
  Convolution<T> c{w,
                   pool,
                   s.batch * s.groups,
                   s.groups,
                   channels,
                   s.filters / s.groups,
                   count_of(w.input),
                   out,
                   taps,
                   channels * taps,
                   x,
                   weights,
                   bias,
                   sums};
  int64_t wanted = 2 * pool.size(), pixel_tasks = c.images * ((out + 63) / 64);
  if (pixel_tasks < wanted && c.filters >= 32) {
    convolve_by_filters(c);
  } else {
    convolve_by_pixels(c, wanted);
  }
}

template <typename T>
void convolve(const ConvShape& s, const T* x, const T* weights, const T* bias, SumsTarget& sums,
              ThreadPool& pool) {
  if (s.batch == 0 || s.filters == 0 || count_of(s.window.output) == 0) return;
  (s.groups == s.channels ? convolve_depthwise<T> : convolve_columns<T>)(s, x, weights, bias, sums,
                                                                         pool);
}

#define RF_INSTANTIATE(NAME, T) \
  template void NAME<T>(const ConvShape&, const T*, const T*, const T*, SumsTarget&, ThreadPool&);
RF_INSTANTIATE(convolve_columns, float)
RF_INSTANTIATE(convolve_columns, double)
RF_INSTANTIATE(convolve, float)
RF_INSTANTIATE(convolve, double)
#undef RF_INSTANTIATE

ConvShape make_conv_shape(const OpaqueCall& call, int x, int w) {
  return make_conv_shape(call, call.dims(x), call.dims(w));
}

ConvShape make_conv_shape(const ops::NodeView& node, const Dims& x, const Dims& w) {
  if (x.size() != w.size() || x.size() < 3) {
    node.fail(fmt::format("input [{}] and weights [{}] must have the same rank, at least 3",
                          fmt::join(x, ","), fmt::join(w, ",")));
  }
  ConvShape shape;
  shape.batch = x[0];
  shape.channels = x[1];
  shape.filters = w[0];
  shape.groups = node.integer("group", 1);
  if (shape.groups <= 0 || shape.channels % shape.groups != 0 ||
      shape.filters % shape.groups != 0 || w[1] != shape.channels / shape.groups) {
    node.fail(fmt::format("group {} does not fit {} input channels and weights [{}]", shape.groups,
                          shape.channels, fmt::join(w, ",")));
  }
  shape.window = make_window(node, std::span(x).subspan(2), std::span(w).subspan(2));
  return shape;
}

}  // namespace redfuser::cpu
