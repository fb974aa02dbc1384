#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <utility>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/image/window.h"
#include "cpu/opaque/opaque_gemm.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/simd/kernel_table.h"
#include "cpu/simd/windows/overlap.h"

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

int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Of one image and group: blocks of the outermost dimension, each with filters in `shares`, which
// are multiplied `filters` at a time.
struct Blocks {
  int axis;               // the outermost dimension that the operator has
  int64_t lines, shares;  // `lines` of the output along `axis`
  int64_t filters;
};

constexpr int64_t kRows = 128;              // of a product: filters and their taps
constexpr int64_t kColumnElements = 65536;  // of products, which stay in the second-level cache
constexpr int64_t kInputElements = 262144;  // likewise

Blocks blocks_of(const TransposedShape& s, int threads) {
  const Window& w = s.window;
  const int axis = 3 - w.rank;
  const int64_t taps = count_of(w.kernel), channels = s.channels / s.groups;
  const int64_t line =
      std::max<int64_t>(count_of(w.input) / std::max<int64_t>(w.input[axis], 1), 1);
  const int64_t images = std::max<int64_t>(s.batch * s.groups, 1);
  const int64_t wanted = threads > 1 ? 2 * int64_t{threads} : 1;
  const int64_t filters =
      std::clamp<int64_t>(kRows / std::max<int64_t>(taps, 1), 1, std::max<int64_t>(s.filters, 1));
  const int64_t fitting = std::min(kColumnElements / std::max<int64_t>(filters * taps * line, 1),
                                   kInputElements / std::max<int64_t>(channels * line, 1));
  // Lines of the input beside a block's own are multiplied again for the next block.
  const int64_t shared = ((w.kernel[axis] - 1) * w.dilation[axis]) / w.stride[axis];
  // Threads divide the larger of the weights and the input. Each thread reads the whole of the
  // other.
  const bool by_filters = s.filters * taps > w.input[axis] * line;
  const int64_t share = w.input[axis] / (by_filters ? 1 : parts_of(wanted, images));
  const int64_t lines = std::min(std::max({std::min(fitting, share), 4 * shared, int64_t{1}}),
                                 w.output[axis] / w.stride[axis] + 1);
  const int64_t down = parts_of(w.output[axis], lines * w.stride[axis]);
  const int64_t most = by_filters ? s.filters : parts_of(s.filters, filters);
  const int64_t shares = std::min(parts_of(wanted, images * down), most);
  return {axis, lines * w.stride[axis], std::max<int64_t>(shares, 1), filters};
}

// Lines [begin, end) of the output along `axis`, and the lines [first, first + count) of the input
// that reach them.
struct LineBlock {
  int64_t begin, end, first, count;
};

LineBlock line_block(const Window& w, int axis, int64_t begin, int64_t lines) {
  const int64_t end = std::min(begin + lines, w.output[axis]), step = w.stride[axis];
  const int64_t low = begin + w.pad_begin[axis] - (w.kernel[axis] - 1) * w.dilation[axis];
  const int64_t first = low > 0 ? parts_of(low, step) : 0;
  const int64_t high = end - 1 + w.pad_begin[axis];
  const int64_t last = high < 0 ? 0 : std::min(high / step + 1, w.input[axis]);
  return {begin, end, first, std::max<int64_t>(last - first, 0)};
}

// Which lines of a block's input fall on which lines of its output.
class BlockOverlap {
 public:
  // Lines of tap t begin at t · tap_stride.
  BlockOverlap(const Window& w, int axis, const LineBlock& block, int64_t tap_stride)
      : input_(w.input), output_(w.output) {
    Size3 offset;
    for (int i = 0; i < 3; ++i) offset[i] = -w.pad_begin[i];
    input_[axis] = block.count, output_[axis] = block.end - block.begin;
    offset[axis] += block.first * w.stride[axis] - block.begin;
    // The input position whose tap k falls on output position o, or -1.
    const auto source_of = [&](int i, int64_t o, int64_t k) {
      const int64_t at = o - offset[i] - k * w.dilation[i];
      const bool inside = at >= 0 && at % w.stride[i] == 0 && at / w.stride[i] < input_[i];
      return inside ? at / w.stride[i] : -1;
    };
    for (int64_t od = 0; od < output_[0]; ++od) {
      for (int64_t oh = 0; oh < output_[1]; ++oh) {
        for (int64_t k = 0; k < w.kernel[0] * w.kernel[1]; ++k) {
          const int64_t d = source_of(0, od, k / w.kernel[1]);
          const int64_t h = source_of(1, oh, k % w.kernel[1]);
          if (d < 0 || h < 0) continue;
          const int64_t line = (d * input_[1] + h) * input_[2], tap = k * w.kernel[2];
          sources_.push_back({tap * tap_stride + line, tap});
        }
        line_ends_.push_back(static_cast<int64_t>(sources_.size()));
      }
    }
    // Phases beyond the columns have none. Taps are in the order of their phases.
    const int64_t phases = std::min(w.stride[2], output_[2]);
    ChargedVector<std::pair<int64_t, OverlapTap>> taps;
    for (int64_t k = 0; k < w.kernel[2]; ++k) {
      const int64_t at = k * w.dilation[2] + offset[2], shift = floor_of(at, w.stride[2]);
      const int64_t phase = at - shift * w.stride[2];
      if (phase < phases) taps.push_back({phase, {k * tap_stride, k, shift}});
    }
    std::stable_sort(taps.begin(), taps.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    phase_ends_.assign(static_cast<size_t>(phases), 0);
    for (const auto& [phase, tap] : taps) {
      taps_.push_back(tap);
      ++phase_ends_[static_cast<size_t>(phase)];
    }
    std::partial_sum(phase_ends_.begin(), phase_ends_.end(), phase_ends_.begin());
  }

  OverlapArgs args() const {
    OverlapArgs args;
    args.lines = output_[0] * output_[1], args.columns = output_[2], args.width = input_[2];
    args.phases = static_cast<int64_t>(phase_ends_.size());
    args.line_ends = line_ends_.data(), args.sources = sources_.data();
    args.phase_ends = phase_ends_.data(), args.taps = taps_.data();
    return args;
  }

 private:
  Size3 input_, output_;
  ChargedVector<int64_t> line_ends_, phase_ends_;
  ChargedVector<OverlapLine> sources_;
  ChargedVector<OverlapTap> taps_;
};

// Weights as the rows of products: [group][filter, tap][channel], rows `stride` elements apart.
struct WeightRows {
  int64_t stride = 0;
  Tensor rows;
};

template <typename T>
WeightRows weight_rows(const TransposedShape& s, const Tensor& weights, ThreadPool& pool) {
  constexpr int64_t kLine = 16, kSet = 128;  // rows a multiple of this apart share few cache lines
  const int64_t channels = s.channels / s.groups, rows = s.filters * count_of(s.window.kernel);
  WeightRows result;
  result.stride = parts_of(channels, kLine) * kLine;
  if (result.stride % kSet == 0) result.stride += kLine;
  result.rows = Tensor(weights.dtype(), {s.groups * rows * result.stride});
  const auto part = [&](int64_t group, int64_t begin, int64_t end) {
    MoveArgs move;
    move.rows = end - begin, move.columns = channels;
    move.from = weights.as<T>() + group * channels * rows + begin;
    move.size = channels * rows - begin;
    move.row_stride = 1, move.column_stride = rows;
    move.out = result.rows.as<T>() + (group * rows + begin) * result.stride;
    move.out_stride = result.stride;
    kernels().move[sizeof(T) == 4 ? 2 : 3](move);
  };
  for (int64_t group = 0; group < s.groups; ++group) {
    parallel_ranges(pool, rows, 1 + (1 << 14) / channels,
                    [&](int64_t begin, int64_t end) { part(group, begin, end); });
  }
  return result;
}

// A block of one image and group.
template <typename T>
class TransposedBlock {
 public:
  TransposedBlock(const TransposedShape& s, const Blocks& blocks, const LineBlock& block)
      : s_(s),
        filters_(blocks.filters),
        line_(count_of(s.window.input) / std::max<int64_t>(s.window.input[blocks.axis], 1)),
        first_(block.first * line_),
        pixels_(block.count * line_),
        pitch_(parts_of(pixels_, 16) * 16),
        taps_(count_of(s.window.kernel)),
        overlap_(s.window, blocks.axis, block, single() ? 0 : pitch_),
        args_(overlap_.args()) {
    const int64_t line = count_of(s.window.output) / s.window.output[blocks.axis];
    out_ = block.begin * line;
    args_.out_stride = count_of(s.window.output);
  }

  // Elements of the scratch memory of `run`.
  int64_t scratch_size() const {
    const int64_t panels = single() ? 0 : panel_elements(s_.channels / s_.groups, pixels_);
    return columns() + 2 * kSlack + panels;
  }

  // Filters [begin, end) of a group: x is its first channel, `bias` (or null) and y those of its
  // first filter.
  void run(const T* x, const T* weights, int64_t weight_stride, const T* bias, int64_t begin,
           int64_t end, T* y, T* scratch) const {
    const int64_t most = std::min(filters_, end - begin), in = count_of(s_.window.input);
    const int64_t channels = s_.channels / s_.groups;
    T *lines = scratch + kSlack, *panels = lines + columns() + kSlack;
    if (single()) {
      std::copy_n(x + first_, pixels_, lines);
      return add(lines, 0, weights, bias, begin, end, y);
    }
    pack_panels(channels, pixels_, x + first_, in, panels);
    for (int64_t f = begin; f < end; f += most) {
      const int64_t last = std::min(f + most, end);
      // columns[filter, tap, pixel] = Σ_c w[filter, tap, c] · x[c, pixel]
      gemm_panels((last - f) * taps_, pixels_, channels, weights + f * taps_ * weight_stride,
                  weight_stride, panels, lines, pitch_);
      add(lines, taps_ * pitch_, nullptr, bias, f, last, y);
    }
  }

 private:
  static constexpr int64_t kSlack = 64 / sizeof(T);  // that the kernel may read

  // The columns of one channel are its input times the weights: the kernel multiplies.
  bool single() const { return s_.channels == s_.groups; }
  int64_t columns() const { return single() ? pitch_ : filters_ * taps_ * pitch_; }

  void add(const T* lines, int64_t stride, const T* weights, const T* bias, int64_t begin,
           int64_t end, T* y) const {
    OverlapArgs args = args_;
    args.planes = end - begin;
    args.in = lines, args.in_stride = stride;
    args.weights = weights == nullptr ? nullptr : weights + begin * taps_;
    args.weights_stride = taps_;
    args.bias = bias == nullptr ? nullptr : bias + begin;
    args.out = y + begin * args.out_stride + out_;
    (sizeof(T) == 4 ? kernels().overlap_f32 : kernels().overlap_f64)(args);
  }

  const TransposedShape& s_;
  int64_t filters_, line_, first_, pixels_, pitch_, taps_;
  BlockOverlap overlap_;
  OverlapArgs args_;
  int64_t out_;
};

template <typename T>
void convolve_transposed(const TransposedShape& s, const T* x, const T* weights,
                         int64_t weight_stride, const T* bias, T* y, ThreadPool& pool) {
  const Window& w = s.window;
  const int64_t channels = s.channels / s.groups, in = count_of(w.input), out = count_of(w.output);
  if (s.filters == 0 || out == 0) return;
  const Blocks blocks = blocks_of(s, pool.size());
  const int64_t down = parts_of(w.output[blocks.axis], blocks.lines);
  const int64_t group_weights = s.filters * count_of(w.kernel) * weight_stride;
  std::deque<TransposedBlock<T>> lines;
  for (int64_t i = 0; i < down; ++i) {
    lines.emplace_back(s, blocks, line_block(w, blocks.axis, i * blocks.lines, blocks.lines));
  }
  int64_t size = 0;
  for (const auto& block : lines) size = std::max(size, block.scratch_size());
  Tensor space(sizeof(T) == 4 ? DType::Float32 : DType::Float64, {pool.size(), size});
  pool.parallel_for(s.batch * s.groups * down * blocks.shares, [&](int64_t task, int worker) {
    const int64_t share = task % blocks.shares, part = task / blocks.shares;
    const int64_t image = part / down, group = image % s.groups;
    lines[part % down].run(x + image * channels * in, weights + group * group_weights,
                           weight_stride, bias == nullptr ? nullptr : bias + group * s.filters,
                           s.filters * share / blocks.shares,
                           s.filters * (share + 1) / blocks.shares, y + image * s.filters * out,
                           space.as<T>() + worker * size);
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
    const auto run_with = [&](const T* weights, int64_t stride) {
      convolve_transposed<T>(shape, x.as<T>(), weights, stride, bias.as<T>(), y.as<T>(),
                             call.threads());
    };
    if (shape.channels == shape.groups) return run_with(w.as<T>(), 1);
    const auto pack = [&] { return weight_rows<T>(shape, w, call.threads()); };
    if (call.is_constant(1)) {
      const WeightRows& packed = call.prepared<WeightRows>(pack);
      return run_with(packed.rows.as<T>(), packed.stride);
    }
    const WeightRows packed = pack();
    run_with(packed.rows.as<T>(), packed.stride);
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
