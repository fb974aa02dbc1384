#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/image/split_line.h"
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

// The parts of at most `size` that make up `all`.
int64_t parts_of(int64_t all, int64_t size) { return (all + size - 1) / size; }

// Of a task: so many filters, whose taps are the rows of a product, and lines of the output.
constexpr int64_t kRows = 128;
constexpr int64_t kColumnElements = 65536;  // of products, which stay in the second-level cache
struct Blocks {
  int64_t filters, lines;
};

Blocks blocks_of(const TransposedShape& s, int threads) {
  const Window& w = s.window;
  const int64_t taps = count_of(w.kernel), line = w.input[0] * w.input[2];
  const int64_t images = s.batch * s.groups, wanted = 2 * int64_t{threads};
  // Lines are divided among threads where there are any, else filters.
  const int64_t least = parts_of(wanted, std::max<int64_t>(images * w.input[1], 1));
  const int64_t filters = std::clamp<int64_t>(
      std::min(kRows / std::max<int64_t>(taps, 1), parts_of(s.filters, least)), 1, s.filters);
  // Lines of the input beside a block's own are multiplied again for the next block.
  const int64_t shared = ((w.kernel[1] - 1) * w.dilation[1]) / w.stride[1];
  const int64_t fitting = kColumnElements / std::max<int64_t>(filters * taps * line, 1);
  const int64_t tasks = std::max<int64_t>(images * parts_of(s.filters, filters), 1);
  const int64_t shares = w.input[1] / parts_of(wanted, tasks);
  const int64_t lines = std::max({std::min(fitting, shares), 4 * shared, int64_t{1}});
  return {filters, std::min(lines, w.output[1] / w.stride[1] + 1) * w.stride[1]};
}

// A block of output lines of all depths, and the input lines [first, first + count) that reach it.
struct LineBlock {
  int64_t begin, end, first, count;
};

LineBlock line_block(const Window& w, int64_t begin, int64_t lines) {
  const int64_t end = std::min(begin + lines, w.output[1]), step = w.stride[1];
  const int64_t low = begin + w.pad_begin[1] - (w.kernel[1] - 1) * w.dilation[1];
  const int64_t first = low > 0 ? parts_of(low, step) : 0;
  const int64_t high = end - 1 + w.pad_begin[1];
  const int64_t last = high < 0 ? 0 : std::min(high / step + 1, w.input[1]);
  return {begin, end, first, std::max<int64_t>(last - first, 0)};
}

// Adds up the contributions of one filter, columns[tap, depth, input line of the block, column], to
// the block's lines of its output plane.
template <typename T>
void sum_lines(const Window& w, const LineBlock& block, const T* columns, T bias,
               SplitLine<T>& line, T* plane) {
  const int64_t slice = block.count * w.input[2], pixels = w.input[0] * slice;
  // The input position whose tap k falls on output position o, or -1.
  const auto source_of = [&](int i, int64_t o, int64_t k) {
    const int64_t at = o + w.pad_begin[i] - k * w.dilation[i];
    const bool inside = at >= 0 && at % w.stride[i] == 0 && at / w.stride[i] < w.input[i];
    return inside ? at / w.stride[i] : -1;
  };
  for (int64_t od = 0; od < w.output[0]; ++od) {
    for (int64_t oh = block.begin; oh < block.end; ++oh) {
      line.fill(bias);
      for (int64_t k = 0; k < w.kernel[0] * w.kernel[1]; ++k) {
        const int64_t d = source_of(0, od, k / w.kernel[1]), h = source_of(1, oh, k % w.kernel[1]);
        if (d < 0 || h < 0) continue;
        const T* source =
            columns + k * w.kernel[2] * pixels + d * slice + (h - block.first) * w.input[2];
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, source += pixels) {
          line.add(source, w.input[2], kw * w.dilation[2] - w.pad_begin[2]);
        }
      }
      line.write(plane + (od * w.output[1] + oh) * w.output[2]);
    }
  }
}

template <typename T>
void convolve_transposed(const TransposedShape& s, const T* x, const T* weights, const T* bias,
                         T* y, ThreadPool& pool) {
  const Window& w = s.window;
  const int64_t channels = s.channels / s.groups, taps = count_of(w.kernel);
  const int64_t in = count_of(w.input), out = count_of(w.output);
  if (s.filters == 0 || out == 0) return;
  const Blocks blocks = blocks_of(s, pool.size());
  const int64_t across = parts_of(s.filters, blocks.filters);
  const int64_t down = parts_of(w.output[1], blocks.lines);
  pool.parallel_for(s.batch * s.groups * across * down, [&](int64_t task, int) {
    const int64_t image = task / (across * down), group = image % s.groups;
    const int64_t filter = task / down % across * blocks.filters;
    const int64_t count = std::min(blocks.filters, s.filters - filter);
    const LineBlock block = line_block(w, task % down * blocks.lines, blocks.lines);
    const int64_t slice = block.count * w.input[2], pixels = w.input[0] * slice;
    const int64_t size = element_count({count, taps, pixels});
    auto columns = scratch<T>(size);
    std::fill_n(columns.get(), size, T(0));
    // columns[filter, tap, pixel] = Σ_c w[c, filter, tap] · x[c, pixel]
    for (int64_t d = 0; d < w.input[0]; ++d) {
      gemm_accumulate(count * taps, slice, channels,
                      weights + (group * channels * s.filters + filter) * taps, s.filters * taps,
                      true, x + image * channels * in + (d * w.input[1] + block.first) * w.input[2],
                      in, columns.get() + d * slice, pixels);
    }
    SplitLine<T> line(w);
    for (int64_t f = 0; f < count; ++f) {
      const T start = bias == nullptr ? T(0) : bias[group * s.filters + filter + f];
      sum_lines(w, block, columns.get() + f * taps * pixels, start, line,
                y + (image * s.filters + filter + f) * out);
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
