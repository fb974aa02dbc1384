// Fourier transforms of lines of tensors.
#include <algorithm>
#include <optional>
#include <type_traits>

#include "base/dispatch.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/opaque/tensor/fourier.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {
namespace {

// A thread's least share, in points.
constexpr int64_t kPointsPerThread = 1 << 14;

// One lane of a buffer: sample or bin t is at data[t · stride] and, of complex numbers, its
// imaginary part `lanes` further.
struct Lane {
  double* data;
  int64_t stride, lanes;
};

// Points of a tensor: point t is at data[t · stride], its imaginary part in the next element.
template <typename T>
struct Line {
  const T* data;
  int64_t count, stride, parts;

  double real(int64_t t) const { return static_cast<double>(data[t * stride]); }
  double imaginary(int64_t t) const {
    return parts == 2 ? static_cast<double>(data[t * stride + 1]) : 0;
  }
};

// Transforms `lines` signals, those of a vector's lanes together. load(line, lane) writes all
// points of a line; store(line, lane) reads the bins that the tables yield.
template <typename Load, typename Store>
void transform_lines(const FourierTables& tables, int64_t lines, ThreadPool& pool, const Load& load,
                     const Store& store) {
  const KernelTable& table = kernels();
  const FourierKernels& kernels = lines == 1 ? *table.fourier_single : *table.fourier;
  const int64_t lanes = kernels.lanes, size = tables.buffer_size(lanes);
  const int64_t groups = (lines + lanes - 1) / lanes;
  const int64_t grain = kPointsPerThread / (tables.points() * lanes) + 1;
  parallel_ranges(pool, groups, grain, [&](int64_t begin, int64_t end) {
    const ScratchArray<double> x = scratch<double>(size), other = scratch<double>(size);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * lanes, count = std::min(lanes, lines - first);
      if (count < lanes) std::fill(x.get(), x.get() + size, 0);
      for (int64_t l = 0; l < count; ++l) {
        load(first + l, Lane{x.get() + l, tables.sample_stride() * lanes, lanes});
      }
      const double* bins = tables.transform(kernels, x.get(), other.get());
      for (int64_t l = 0; l < count; ++l) {
        store(first + l, Lane{const_cast<double*>(bins) + l, 2 * lanes, lanes});
      }
    }
  });
}

// Calls body with the element type of a tensor of floats.
template <typename Body>
void dispatch_floats(const OpaqueCall& call, const Tensor& tensor, const Body& body) {
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<Arithmetic<T>>) {
      body(tag);
    } else {
      call.fail(fmt::format("a signal of {}", name_of(tensor.dtype())));
    }
  });
}

// The tables of a length; kept for later runs where length and kind are `fixed`, the same in all.
class TablesOf {
 public:
  TablesOf(const OpaqueCall& call, bool fixed, int64_t points, bool real) {
    const auto make = [&] { return FourierTables(points, real); };
    tables_ = fixed ? &call.prepared<FourierTables>(make) : &own_.emplace(make());
  }
  const FourierTables& operator*() const { return *tables_; }

 private:
  std::optional<FourierTables> own_;
  const FourierTables* tables_;
};

struct Transform {
  int64_t length, bins;  // points; bins of the result
  int64_t parts = 2;     // of the result: real numbers or complex ones
  bool inverse = false;
};

// Points beyond the line are 0, but the other half of a real signal's spectrum, the input where the
// result is real, is the conjugate of the first. An inverse transform is a forward one between
// exchanges of real and imaginary parts.
template <typename T>
void load_points(const Transform& transform, const Line<T>& line, const Lane& to) {
  for (int64_t t = 0; t < transform.length; ++t) {
    double* at = to.data + t * to.stride;
    const int64_t mirror = transform.length - t;
    double real = 0, imaginary = 0;
    if (t < line.count) {
      real = line.real(t), imaginary = line.imaginary(t);
    } else if (transform.parts == 1 && mirror < line.count) {
      real = line.real(mirror), imaginary = -line.imaginary(mirror);
    }
    if (transform.inverse) std::swap(real, imaginary);
    at[0] = real;
    if (to.stride > to.lanes) at[to.lanes] = imaginary;
  }
}

// Bins from `known` on are conjugates of those before.
template <typename T>
void store_bins(const Transform& transform, int64_t known, const Lane& from, T* to,
                int64_t stride) {
  for (int64_t k = 0; k < transform.bins; ++k) {
    const double* at = from.data + (k < known ? k : transform.length - k) * from.stride;
    double real = at[0], imaginary = k < known ? at[from.lanes] : -at[from.lanes];
    if (transform.inverse) {
      std::swap(real, imaginary);
      real /= static_cast<double>(transform.length);
      imaginary /= static_cast<double>(transform.length);
    }
    to[k * stride] = static_cast<T>(real);
    if (transform.parts == 2) to[k * stride + 1] = static_cast<T>(imaginary);
  }
}

}  // namespace

void run_dft(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const int rank = static_cast<int>(x.dims().size());
  int64_t wanted = call.opset() < 20 ? call.integer("axis", 1) : -2;
  if (call.has_input(2)) wanted = call.integer_of(2);
  const int axis = call.axis(wanted, rank);
  const bool onesided = call.integer("onesided", 0) != 0;
  const int64_t parts = x.dims().back();
  if (parts != 1 && parts != 2) call.fail("the last dimension must be 1 or 2");
  Transform dft;
  dft.inverse = call.integer("inverse", 0) != 0;
  const bool real_result = dft.inverse && onesided;
  const int64_t given = x.dims()[static_cast<size_t>(axis)];
  dft.length = real_result ? 2 * (given - 1) : given;
  if (call.has_input(1)) dft.length = call.integer_of(1);
  if (dft.length < 1) call.fail(fmt::format("a transform of {} points", dft.length));
  dft.bins = real_result || !onesided ? dft.length : dft.length / 2 + 1;
  dft.parts = real_result ? 1 : 2;
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = dft.bins;
  dims.back() = dft.parts;
  Tensor& y = call.allocate(0, dims);
  if (y.size() == 0) return;
  const AxisView in = around_axis(x.dims(), axis);
  const int64_t inner = in.inner / parts;
  const std::vector<ir::Expr>& shape = call.shape(0);
  const bool fixed =
      shape.back()->is_constant() &&
      (call.has_input(1) ? call.is_constant(1) : shape[static_cast<size_t>(axis)]->is_constant());
  const TablesOf held(call, fixed, dft.length, parts == 1 && !dft.inverse);
  const FourierTables& tables = *held;
  dispatch_floats(call, x, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto load = [&](int64_t line, const Lane& to) {
      const int64_t at = line / inner * given * inner + line % inner;
      load_points(dft, Line<T>{x.as<T>() + at * parts, given, in.inner, parts}, to);
    };
    const auto store = [&](int64_t line, const Lane& from) {
      const int64_t at = line / inner * dft.bins * inner + line % inner;
      store_bins(dft, tables.bins(), from, y.as<T>() + at * dft.parts, inner * dft.parts);
    };
    transform_lines(tables, in.outer * inner, call.threads(), load, store);
  });
}

void run_stft(OpaqueCall& call) {
  const Tensor& signal = call.tensor(0);
  const int64_t step = call.integer_of(1);
  ChargedVector<double> window;
  if (call.has_input(2)) window = call.reals_of(2);
  const int64_t length =
      call.has_input(3) ? call.integer_of(3) : static_cast<int64_t>(window.size());
  const int64_t batch = signal.dims()[0], samples = signal.dims()[1];
  const int64_t parts = signal.dims().size() > 2 ? signal.dims()[2] : 1;
  if (signal.dims().size() > 3 || (parts != 1 && parts != 2)) {
    call.fail("the signal must be [batch,length,1 or 2]");
  }
  const auto weights = static_cast<int64_t>(window.size());
  if (step < 1 || length < 1 || length > samples || (call.has_input(2) && weights != length)) {
    call.fail(fmt::format("frames of {} every {} in {} samples, window of {}", length, step,
                          samples, weights));
  }
  if (!call.has_input(2)) window.assign(static_cast<size_t>(length), 1);
  const bool onesided = call.integer("onesided", 1) != 0;
  const int64_t frames = (samples - length) / step + 1, bins = onesided ? length / 2 + 1 : length;
  Tensor& y = call.allocate(0, {batch, frames, bins, 2});
  const Transform transform{length, bins};
  const std::vector<ir::Expr>& shape = call.shape(0);
  const bool fixed = (shape.size() < 3 || shape[2]->is_constant()) &&
                     (call.has_input(3) ? call.is_constant(3) : call.shape(2)[0]->is_constant());
  const TablesOf held(call, fixed, length, parts == 1);
  const FourierTables& tables = *held;
  dispatch_floats(call, signal, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto load = [&](int64_t frame, const Lane& to) {
      const int64_t begin = frame / frames * samples + frame % frames * step;
      const Line<T> line{signal.as<T>() + begin * parts, length, parts, parts};
      for (int64_t t = 0; t < length; ++t) {
        double* at = to.data + t * to.stride;
        const double w = window[static_cast<size_t>(t)];
        at[0] = line.real(t) * w;
        if (to.stride > to.lanes) at[to.lanes] = line.imaginary(t) * w;
      }
    };
    const auto store = [&](int64_t frame, const Lane& from) {
      store_bins(transform, tables.bins(), from, y.as<T>() + frame * bins * 2, 2);
    };
    transform_lines(tables, batch * frames, call.threads(), load, store);
  });
}

}  // namespace redfuser::cpu
