#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "base/dispatch.h"
#include "base/error.h"
#include "cpu/opaque/image/window_fold.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/simd/kernel_table.h"
#include "cpu/simd/windows/pool.h"

namespace redfuser::cpu {
namespace {

struct Pool {
  int64_t planes;  // batch times channels
  Window window;
  Dims output;
};

Pool make_pool(const OpaqueCall& call) {
  const Dims& dims = call.dims(0);
  if (dims.size() < 3) call.fail("input " + describe(call.tensor(0)) + " needs rank 3 or more");
  std::vector<int64_t> kernel = call.integers("kernel_shape", {});
  Pool pool{dims[0] * dims[1], make_window(call, std::span(dims).subspan(2), kernel), {}};
  pool.output = pool.window.dims(dims[0], dims[1], pool.window.output);
  return pool;
}

// The taps of one window along one dimension that fall inside the input: positions
// first + t * dilation for t in [0, count). `padded` counts those inside input and padding.
struct Span {
  int64_t first, count, padded;
};
Span span_of(const Window& w, int i, int64_t output) {
  int64_t start = output * w.stride[i] - w.pad_begin[i], step = w.dilation[i];
  int64_t skipped = start < 0 ? (-start + step - 1) / step : 0;
  auto until = [&](int64_t end) {  // taps before position `end`
    return end <= start ? 0 : std::min(w.kernel[i], (end - start + step - 1) / step);
  };
  return {start + skipped * step, std::max<int64_t>(until(w.input[i]) - skipped, 0),
          until(w.input[i] + w.pad_end[i])};
}

// Calls body(output index, position) for every tap of every window of one plane, and
// finish(output index) after each window.
template <typename Body, typename Finish>
void for_each_window(const Window& w, const Body& body, const Finish& finish) {
  int64_t index = 0;
  for (int64_t od = 0; od < w.output[0]; ++od) {
    Span d = span_of(w, 0, od);
    for (int64_t oh = 0; oh < w.output[1]; ++oh) {
      Span h = span_of(w, 1, oh);
      for (int64_t oc = 0; oc < w.output[2]; ++oc, ++index) {
        Span c = span_of(w, 2, oc);
        for (int64_t i = 0; i < d.count; ++i) {
          for (int64_t j = 0; j < h.count; ++j) {
            int64_t line = (d.first + i * w.dilation[0]) * w.input[1] + h.first + j * w.dilation[1];
            int64_t position = line * w.input[2] + c.first;
            for (int64_t k = 0; k < c.count; ++k, position += w.dilation[2]) body(index, position);
          }
        }
        finish(index);
      }
    }
  }
}

// The index that MaxPool reports: flat over the whole tensor, row- or column-major within a plane.
int64_t reported_index(const Window& w, int64_t plane, int64_t position, bool column_major) {
  int64_t base = plane * count_of(w.input);
  if (!column_major) return base + position;
  int64_t c = position % w.input[2], h = position / w.input[2] % w.input[1];
  int64_t d = position / (w.input[2] * w.input[1]);
  return base + d + w.input[0] * (h + w.input[1] * c);
}

// The result of a window without taps: the identity of max.
template <typename T>
T lowest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
}

template <typename T>
void max_pool(const Pool& pool, const T* x, T* y, int64_t* indices, bool column_major,
              ThreadPool& threads) {
  const Window& w = pool.window;
  int64_t in = count_of(w.input), out = count_of(w.output);
  threads.parallel_for(pool.planes, [&](int64_t plane, int) {
    const T* source = x + plane * in;
    int64_t best = -1;
    auto take = [&](int64_t, int64_t position) {
      // The first maximum wins; NaN wins over numbers.
      bool is_nan = source[position] != source[position];
      if (best < 0 || source[position] > source[best] || (is_nan && source[best] == source[best])) {
        best = position;
      }
    };
    for_each_window(w, take, [&](int64_t index) {
      y[plane * out + index] = best < 0 ? lowest<T>() : source[best];
      indices[plane * out + index] = best < 0 ? -1 : reported_index(w, plane, best, column_major);
      best = -1;
    });
  });
}

template <typename T>
constexpr Elem elem_of_pool() {
  return sizeof(T) == 1 ? Elem::Bool : sizeof(T) == 4 ? Elem::F32 : Elem::F64;
}
template <typename T>
constexpr bool kHasKernels = std::is_floating_point_v<T> || std::is_same_v<T, uint8_t>;

// fold(FoldRows<T>) by the vector kernels, or by `combine` for types that they do not have.
template <typename T, typename Combine>
auto fold_of(BinaryOp op, const Combine& combine) {
  return [op, combine](const FoldRows<T>& f) {
    if constexpr (kHasKernels<T>) {
      const auto elem = static_cast<int>(elem_of_pool<T>());
      kernels().binary[elem][static_cast<int>(op)][static_cast<int>(Mode::VV)](
          f.rows, f.cols, f.to, f.to_stride, {f.a, f.a_stride}, {f.b, f.b_stride});
    } else {
      for (int64_t r = 0; r < f.rows; ++r) {
        const T *a = f.a + r * f.a_stride, *b = f.b + r * f.b_stride;
        T* to = f.to + r * f.to_stride;
        for (int64_t c = 0; c < f.cols; ++c) to[c] = combine(a[c], b[c]);
      }
    }
  };
}

// Whether the one window of each plane is the plane.
bool takes_planes(const Window& w) {
  constexpr Size3 kNone{0, 0, 0}, kOne{1, 1, 1};
  return w.kernel == w.input && w.output == kOne && w.pad_begin == kNone && w.dilation == kOne;
}

// Such windows are rows of a reduction.
template <typename T>
void pool_planes(const Pool& pool, ReduceOp op, const T* x, T* y, T empty, ThreadPool& threads) {
  constexpr int64_t kElements = 1 << 14;  // of a task
  const int64_t size = count_of(pool.window.input);
  const int64_t planes = std::max<int64_t>(kElements / size, 1);
  const ReduceFn fold = kernels().reduce[static_cast<int>(elem_of_pool<T>())][static_cast<int>(op)];
  threads.parallel_for((pool.planes + planes - 1) / planes, [&](int64_t task, int) {
    const int64_t first = task * planes, count = std::min(planes, pool.planes - first);
    std::fill_n(y + first, count, empty);
    fold(count, size, y + first, {x + first * size, size});
  });
}

// Folds every window of other types than floats.
template <typename T, typename Fold>
void fold_windows(const Pool& pool, const T* x, T* y, T empty, const Fold& fold,
                  ThreadPool& threads) {
  const WindowFold<T, Fold> windows(pool.window, pool.planes, threads.size(), empty, fold);
  std::vector<ScratchArray<T>> buffers(threads.size());
  threads.parallel_for(windows.tasks(), [&](int64_t task, int worker) {
    ScratchArray<T>& buffer = buffers[worker];
    if (!buffer) {
      buffer = scratch<T>(windows.scratch_size());
      windows.prepare(buffer.get());
    }
    windows.run(task, x, y, buffer.get());
  });
}

// Windows of floats, for tasks of some planes or of some lines of one. Results are divided by
// `divisors`, of a plane of them, unless it is null.
template <typename T>
void slide_windows(const Pool& pool, bool maximum, const T* x, T* y, const T* divisors,
                   ThreadPool& threads) {
  constexpr int64_t kElements = 1 << 14;  // of a task's input
  const Window& w = pool.window;
  const int64_t in = count_of(w.input), out = count_of(w.output);
  if (pool.planes == 0) return;
  ChargedVector<PoolLines> covered;
  for (int64_t d = 0; d < w.output[0]; ++d) {
    const Span slices = span_of(w, 0, d);
    for (int64_t h = 0; h < w.output[1]; ++h) {
      const Span lines = span_of(w, 1, h);
      const int64_t first = (slices.first * w.input[1] + lines.first) * w.input[2];
      covered.push_back({first, slices.count, lines.count});
    }
  }
  PoolArgs args;
  args.maximum = maximum;
  args.columns = w.output[2], args.width = w.input[2];
  args.taps = w.kernel[2], args.stride = w.stride[2], args.dilation = w.dilation[2];
  args.pad = w.pad_begin[2];
  args.slice_step = w.dilation[0] * w.input[1] * w.input[2];
  args.line_step = w.dilation[1] * w.input[2];
  args.in_stride = in, args.out_stride = out;
  const auto lines = static_cast<int64_t>(covered.size());
  const int64_t planes = std::clamp<int64_t>(kElements / std::max<int64_t>(in, 1), 1, pool.planes);
  const int64_t parts = (pool.planes + planes - 1) / planes;
  const int64_t bands = std::clamp<int64_t>((2 * threads.size() + parts - 1) / parts, 1, lines);
  const int64_t size = pool_scratch(args);
  require_memory(element_count({threads.size(), size}), sizeof(T));
  const auto memory = scratch<T>(threads.size() * size);
  threads.parallel_for(parts * bands, [&](int64_t task, int worker) {
    const int64_t first = task / bands * planes, band = task % bands;
    const int64_t begin = lines * band / bands, end = lines * (band + 1) / bands;
    PoolArgs part = args;
    part.planes = std::min(planes, pool.planes - first), part.lines = end - begin;
    part.covered = covered.data() + begin;
    part.in = x + first * in, part.readable = (pool.planes - first) * in;
    part.out = y + first * out + begin * w.output[2];
    part.divisors = divisors == nullptr ? nullptr : divisors + begin * w.output[2];
    part.scratch = memory.get() + worker * size;
    (sizeof(T) == 4 ? kernels().pool_f32 : kernels().pool_f64)(part);
  });
}

template <typename T>
void average_pool(const Pool& pool, const T* x, T* y, bool include_pad, ThreadPool& threads) {
  const Window& w = pool.window;
  auto taps = [&](int i, int64_t output) {
    Span span = span_of(w, i, output);
    return include_pad ? span.padded : span.count;
  };
  // By axis; a result without taps is divided by 1.
  std::array<std::vector<T>, 3> counts;
  for (int i = 0; i < 3; ++i) {
    for (int64_t at = 0; at < w.output[i]; ++at) {
      counts[i].push_back(static_cast<T>(std::max<int64_t>(taps(i, at), 1)));
    }
  }
  if (pool.planes == 0) return;
  if (takes_planes(w)) {
    pool_planes<T>(pool, ReduceOp::Sum, x, y, T(0), threads);
    const T taps_of_plane = counts[0][0] * counts[1][0] * counts[2][0];
    std::for_each_n(y, pool.planes, [&](T& sum) { sum /= taps_of_plane; });
    return;
  }
  ChargedVector<T> divisors;  // of a plane of the output
  for (int64_t row = 0; row < w.output[0] * w.output[1]; ++row) {
    const T rows = counts[0][row / w.output[1]] * counts[1][row % w.output[1]];
    for (const T columns : counts[2]) divisors.push_back(rows * columns);
  }
  slide_windows(pool, false, x, y, divisors.data(), threads);
}

// Runs kernel(T) for the float type of the call's first input, 16-bit ones through float32.
template <typename Kernel>
void pool_floating(OpaqueCall& call, const Kernel& kernel) {
  Pool pool = make_pool(call);
  Tensor x = call.widened(0);
  Tensor y(x.dtype(), pool.output);
  if (x.dtype() == DType::Float32) {
    kernel(pool, x.as<float>(), y.as<float>());
  } else if (x.dtype() == DType::Float64) {
    kernel(pool, x.as<double>(), y.as<double>());
  } else {
    call.fail("input " + describe(x) + " is not floating");
  }
  call.set(0, std::move(y));
}

}  // namespace

void run_max_pool(OpaqueCall& call) {
  Pool pool = make_pool(call);
  Tensor x = call.widened(0);
  Tensor y(x.dtype(), pool.output);
  Tensor indices = call.has_output(1) ? Tensor(DType::Int64, pool.output) : Tensor();
  bool column_major = call.integer("storage_order", 0) != 0;
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_arithmetic_v<T>) {
      call.fail("input " + describe(x) + " is not numeric");
    } else if (indices.defined()) {
      max_pool<T>(pool, x.as<T>(), y.as<T>(), indices.as<int64_t>(), column_major, call.threads());
    } else {
      if constexpr (kHasKernels<T>) {
        if (takes_planes(pool.window)) {
          return pool_planes<T>(pool, ReduceOp::Max, x.as<T>(), y.as<T>(), lowest<T>(),
                                call.threads());
        }
      }
      if constexpr (std::is_floating_point_v<T>) {
        slide_windows<T>(pool, true, x.as<T>(), y.as<T>(), nullptr, call.threads());
      } else {
        const auto larger = fold_of<T>(BinaryOp::Max, [](T a, T b) { return std::max(a, b); });
        fold_windows<T>(pool, x.as<T>(), y.as<T>(), lowest<T>(), larger, call.threads());
      }
    }
  });
  call.set(0, std::move(y));
  if (call.has_output(1)) call.set(1, std::move(indices));
}

void run_average_pool(OpaqueCall& call) {
  bool include_pad = call.integer("count_include_pad", 0) != 0;
  pool_floating(call, [&]<typename T>(const Pool& pool, const T* x, T* y) {
    average_pool(pool, x, y, include_pad, call.threads());
  });
}

void run_lp_pool(OpaqueCall& call) {
  int64_t p = call.integer("p", 2);
  pool_floating(call, [&]<typename T>(const Pool& pool, const T* x, T* y) {
    int64_t in = count_of(pool.window.input), out = count_of(pool.window.output);
    call.threads().parallel_for(pool.planes, [&](int64_t plane, int) {
      double sum = 0;
      auto take = [&](int64_t, int64_t position) {
        sum += std::pow(std::abs(x[plane * in + position]), static_cast<T>(p));
      };
      for_each_window(pool.window, take, [&](int64_t index) {
        y[plane * out + index] = static_cast<T>(std::pow(sum, 1.0 / static_cast<double>(p)));
        sum = 0;
      });
    });
  });
}

}  // namespace redfuser::cpu
