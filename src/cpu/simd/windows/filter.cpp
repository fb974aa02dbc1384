#include <type_traits>

#include "cpu/simd/activation.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Vectors of the output whose sums are held in registers together: as many as hide the latency of
// multiply-adds.
#if RF_VECTOR_BYTES == 64
constexpr int kVectors = 8;
#else
constexpr int kVectors = 6;
#endif

// to[i] = from[i] for i < count. Where `room` elements may be read from `from`, whole vectors are
// copied and followed by a vector of zeros: later lines overwrite them.
template <class T>
RF_INLINE void copy_line(const T* from, int64_t count, int64_t room, T* to) {
  constexpr int W = VectorOf<T>::kWidth;
  int64_t i = 0;
  if ((count + W - 1) / W * W > room) {
    for (; i + W <= count; i += W) store_vector(to + i, load_vector(from + i));
    return copy_part(to + i, from + i, count - i);
  }
  for (; i < count; i += W) store_vector(to + i, load_vector(from + i));
  store_vector(to + count, Vector<T>{});
}

// even[i] = from[2i] and odd[i] = from[2i + 1], of `count` elements. As of copy_line, vectors of
// zeros follow where `room` elements may be read.
template <class T>
RF_INLINE void split_line(const T* from, int64_t count, int64_t room, T* even, T* odd) {
  constexpr int W = VectorOf<T>::kWidth;
  const bool whole = (count + 2 * W - 1) / (2 * W) * (2 * W) <= room;
  int64_t i = 0;
  for (; i + 2 * W <= count || (whole && i < count); i += 2 * W) {
    Vector<T> e, o;
    split_pairs<T>(load_vector(from + i), load_vector(from + i + W), &e, &o);
    store_vector(even + i / 2, e);
    store_vector(odd + i / 2, o);
  }
  if (whole) {
    store_vector(even + (count + 1) / 2, Vector<T>{});
    store_vector(odd + count / 2, Vector<T>{});
  }
  for (; i < count; ++i) (i % 2 == 0 ? even : odd)[i / 2] = from[i];
}

// to[i] = from[i] − zero, of bytes.
template <class T, class In>
RF_INLINE void convert_line(const In* from, int64_t count, T zero, T* to) {
  RF_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(static_cast<int32_t>(from[i])) - zero;
}

// Calls line(from, to) for the input's lines that the padded channel has, with their places there:
// of the first phase of their columns, without padding.
template <class T, class In, class Line>
RF_INLINE void for_each_line(const ChannelArgs& g, const Line& line) {
  const int64_t height = g.stride[1], phases = height * g.stride[2];
  const int64_t slices = g.input[0] < g.depth - g.pad[0] ? g.input[0] : g.depth - g.pad[0];
  const In* from = static_cast<const In*>(g.in);
  for (int64_t d = 0; d < slices; ++d) {
    T* slice = static_cast<T*>(g.padded) + (d + g.pad[0]) * phases * g.plane;
    const In* in = from + d * g.input[1] * g.input[2];
    int64_t row = g.pad[1] / height, part = g.pad[1] % height;
    for (int64_t h = 0; h < g.input[1] && row < g.rows; ++h, in += g.input[2]) {
      line(in, slice + part * g.stride[2] * g.plane + row * g.pitch);
      if (++part == height) part = 0, ++row;
    }
  }
}

// Copies the input into the padded channel, each phase of the strides by itself.
template <class T, class In>
void fill_channel(const ChannelArgs& g) {
  constexpr bool kBytes = !std::is_same_v<T, In>;
  const T zero = kBytes ? static_cast<T>(g.zero) : T{};
  const int64_t width = g.stride[2], left = g.pad[2], room = width * g.pitch - left;
  const int64_t count = g.input[2] < room ? g.input[2] : room;
  const In* end = static_cast<const In*>(g.in) + g.input[0] * g.input[1] * g.input[2];
  if (width == 1) {
    return for_each_line<T, In>(g, [&](const In* from, T* to) {
      if constexpr (kBytes)
        return convert_line(from, count, zero, to + left);
      else
        return copy_line<T>(from, count, end - from, to + left);
    });
  }
  const auto as_numbers = [&](const In* from) {
    if constexpr (kBytes) {
      T* line = static_cast<T*>(g.line);
      convert_line(from, count, zero, line);
      return static_cast<const T*>(line);
    } else {
      return from;
    }
  };
  if (width == 2) {
    const int64_t even = left % 2 * g.plane + left / 2;
    const int64_t odd = (left + 1) % 2 * g.plane + (left + 1) / 2;
    return for_each_line<T, In>(g, [&](const In* from, T* to) {
      const int64_t readable = kBytes ? count + kFilterSlack : end - from;
      split_line(as_numbers(from), count, readable, to + even, to + odd);
    });
  }
  for_each_line<T, In>(g, [&](const In* from, T* to) {
    const T* numbers = as_numbers(from);
    for (int64_t phase = 0; phase < width; ++phase) {
      const int64_t first = left > phase ? (left - phase + width - 1) / width : 0;
      T* at = to + phase * g.plane + first;
      for (int64_t i = first * width + phase - left; i < count; i += width) *at++ = numbers[i];
    }
  });
}

// The sums of NV vectors side by side.
template <class T, int NV>
RF_INLINE void filter_vectors(const ChannelArgs& g, const T* weights, T bias, const T* in,
                              Vector<T>* sum) {
#pragma GCC unroll 8
  for (int v = 0; v < NV; ++v) sum[v] = Vector<T>{} + bias;
  for (int64_t t = 0; t < g.taps; ++t) {
    const T* at = in + g.offsets[t];
    const Vector<T> weight = weights[t] - Vector<T>{};
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) sum[v] += weight * load_vector(at + v * VectorOf<T>::kWidth);
  }
}

// Adds the taps of a run to the sums of NV vectors `pitch` apart: each vector of the input is
// loaded once for all of them.
template <class T, int NV, int K>
RF_INLINE void slide_run(const TapRun& run, const T* weights, const T* in, int64_t pitch,
                         Vector<T>* sum) {
  Vector<T> weight[K];
#pragma GCC unroll 3
  for (int k = 0; k < K; ++k) weight[k] = weights[run.first + k * run.step] - Vector<T>{};
  const T* at = in + run.offset;
#pragma GCC unroll 16
  for (int v = 0; v < NV + K - 1; ++v) {
    const Vector<T> x = load_vector(at + v * pitch);
#pragma GCC unroll 3
    for (int k = 0; k < K; ++k) {
      if (v >= k && v - k < NV) sum[v - k] += weight[k] * x;
    }
  }
}

// The sums of a vector of positions in each of NV lines.
template <class T, int NV>
void filter_lines(const ChannelArgs& g, const T* weights, T bias, const T* in, T* out) {
  static_assert(kMostRun == 3);
  Vector<T> sum[NV];
#pragma GCC unroll 8
  for (int v = 0; v < NV; ++v) sum[v] = Vector<T>{} + bias;
  for (int64_t r = 0; r < g.run_count; ++r) {
    const TapRun& run = g.runs[r];
    if (run.count == 3) {
      slide_run<T, NV, 3>(run, weights, in, g.pitch, sum);
    } else if (run.count == 2) {
      slide_run<T, NV, 2>(run, weights, in, g.pitch, sum);
    } else {
      slide_run<T, NV, 1>(run, weights, in, g.pitch, sum);
    }
  }
  store_activated<T, NV, 1>(g.activation, out, g.output[2], [&](int v, int) { return sum[v]; });
}

template <class T>
using FilterLinesFn = void (*)(const ChannelArgs&, const T*, T, const T*, T*);

template <class T, int NV = kVectors>
FilterLinesFn<T> filter_lines_for(int64_t lines) {
  if constexpr (NV > 1) {
    if (lines < NV) return filter_lines_for<T, NV - 1>(lines);
  }
  return filter_lines<T, NV>;
}

// Of one vector: four taps at once, since each sum waits for the one before.
template <class T>
RF_INLINE Vector<T> filter_vector(const ChannelArgs& g, const T* weights, T bias, const T* in) {
  const auto tap = [&](int64_t t) {
    return (weights[t] - Vector<T>{}) * load_vector(in + g.offsets[t]);
  };
  Vector<T> sum[4] = {Vector<T>{} + bias};
  int64_t t = 0;
  for (; t + 4 <= g.taps; t += 4) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) sum[part] += tap(t + part);
  }
  for (; t < g.taps; ++t) sum[0] += tap(t);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <class T>
using FilterVectorsFn = void (*)(const ChannelArgs&, const T*, T, const T*, T*);

template <class T, int NV>
void filter_to(const ChannelArgs& g, const T* weights, T bias, const T* in, T* out) {
  Vector<T> sum[NV];
  if constexpr (NV == 1) {
    sum[0] = filter_vector<T>(g, weights, bias, in);
  } else {
    filter_vectors<T, NV>(g, weights, bias, in, sum);
  }
  store_activated<T, 1, NV>(g.activation, out, 0, [&](int, int v) { return sum[v]; });
}

template <class T, int NV = kVectors>
FilterVectorsFn<T> filter_for(int64_t vectors) {
  if constexpr (NV > 1) {
    if (vectors < NV) return filter_for<T, NV - 1>(vectors);
  }
  return filter_to<T, NV>;
}

template <class T>
struct ChannelFilter {
  const ChannelArgs& g;
  const T* weights;
  T bias;
  static constexpr int W = VectorOf<T>::kWidth;

  // Whole vectors of `count` positions side by side.
  void along(const T* in, int64_t count, T* out) const {
    for (int64_t p = 0; p < count; p += kVectors * W) {
      const int64_t left = (count - p + W - 1) / W;
      filter_for<T>(left)(g, weights, bias, in + p, out + p);
    }
  }

  // Lines of at least a vector: blocks of lines.
  void by_lines(const T* in, T* out) const {
    const int64_t lines = g.output[1], columns = g.output[2];
    const int64_t blocks = (lines + kVectors - 1) / kVectors;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t line = lines * b / blocks, count = lines * (b + 1) / blocks - line;
      const auto filter = filter_lines_for<T>(count);
      for (int64_t c = 0;; c += W) {
        if (c + W > columns) c = columns - W;
        filter(g, weights, bias, in + line * g.pitch + c, out + line * columns + c);
        if (c + W == columns) break;
      }
    }
  }

  // All positions of the padded lines, from which those of the output are taken.
  void by_planes(const T* in, T* out) const {
    const int64_t lines = g.output[1], columns = g.output[2];
    T* sums = static_cast<T*>(g.sums);
    along(in, (lines - 1) * g.pitch + columns, sums);
    const int64_t whole = (columns + W - 1) / W * W;
    for (int64_t line = 0; line < lines; ++line) {
      const T* from = sums + line * g.pitch;
      T* to = out + line * columns;
      if (line * columns + whole <= lines * columns) {
        for (int64_t c = 0; c < columns; c += W) store_vector(to + c, load_vector(from + c));
      } else {
        int64_t c = 0;
        for (; c + W <= columns; c += W) store_vector(to + c, load_vector(from + c));
        copy_part(to + c, from + c, columns - c);
      }
    }
  }

  void run(const T* in, T* out) const {
    // Taking a vector from the sums costs as much as some taps. Lines load an input once for
    // several taps, so that they may have more columns in all.
    constexpr int64_t kTaking = 3;
    const int64_t columns = g.output[2], whole = (columns + W - 1) / W * W;
    if (columns >= W && g.output[1] >= kVectors / 2 &&
        2 * whole * g.taps <= 3 * g.pitch * (g.taps + kTaking)) {
      by_lines(in, out);
    } else {
      by_planes(in, out);
    }
  }
};

template <class T, class In>
void filter_channel(const ChannelArgs& g) {
  fill_channel<T, In>(g);
  const int64_t slice = g.stride[1] * g.stride[2] * g.plane * g.stride[0];
  T* out = static_cast<T*>(g.out);
  for (int64_t f = 0; f < g.filters; ++f) {
    const T bias = g.bias == nullptr ? T{} : static_cast<const T*>(g.bias)[f];
    const ChannelFilter<T> filter{g, static_cast<const T*>(g.weights) + f * g.taps, bias};
    for (int64_t d = 0; d < g.output[0]; ++d, out += g.output[1] * g.output[2]) {
      filter.run(static_cast<const T*>(g.padded) + d * slice, out);
    }
  }
}

}  // namespace

void add_filter(KernelTable& table) {
  table.filter_f32 = filter_channel<float, float>;
  table.filter_f64 = filter_channel<double, double>;
  table.filter_u8 = filter_channel<float, uint8_t>;
  table.filter_i8 = filter_channel<float, int8_t>;
}

}  // namespace redfuser::cpu::RF_ISA
