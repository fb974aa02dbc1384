// Images from columns: the transpose of the reads of a convolution.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/geometry.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {
namespace {

// Along one dimension, places [begin, end) of a tap lie in the image, the first one at element
// `first` and each next one `stride` further.
struct TapLine {
  int64_t begin, end, first, stride;
};

struct Dimension {
  int64_t image, places;
  std::vector<TapLine> taps;
};

int64_t places_of(int64_t image, int64_t block, const Geometry& g, size_t d) {
  const int64_t pads = g.pads[d] + g.pads[g.strides.size() + d];
  const int64_t span = image + pads - (block - 1) * g.dilations[d] - 1;
  return span < 0 ? 0 : span / g.strides[d] + 1;
}

Dimension dimension_of(int64_t image, int64_t block, const Geometry& g, size_t d) {
  const int64_t pad = g.pads[d], stride = g.strides[d];
  Dimension line{image, places_of(image, block, g, d), {}};
  for (int64_t t = 0; t < block; ++t) {
    // Place p is element p · stride + offset.
    const int64_t offset = t * g.dilations[d] - pad;
    const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const int64_t last = offset >= image ? 0 : (image - 1 - offset) / stride + 1;
    const int64_t end = std::max(begin, std::min(last, line.places));
    line.taps.push_back({begin, end, begin * stride + offset, stride});
  }
  return line;
}

// A dimension whose elements lie in `stride` phases, those with the same remainder beside each
// other: the places of a tap are one run then. Returns the phases' element at each of the image's.
std::vector<int64_t> divide_phases(Dimension& dimension) {
  const int64_t stride = dimension.taps[0].stride, image = dimension.image;
  const int64_t length = (image + stride - 1) / stride;
  std::vector<int64_t> elements;
  for (int64_t i = 0; i < image; ++i) elements.push_back(i % stride * length + i / stride);
  for (TapLine& line : dimension.taps) {
    line.first = line.first % stride * length + line.first / stride;
    line.stride = 1;
  }
  dimension.image = stride * length;
  return elements;
}

// Adds the columns of one channel to its plane of the image.
template <typename A>
class PlaneSum {
 public:
  PlaneSum(const std::vector<Dimension>& dimensions, int64_t count)
      : dimensions_(dimensions), count_(count) {}

  // Dimensions from `d` on, where `tap` and `place` count taps and places of the dimensions before,
  // and `at` elements of the image.
  void add(const A* x, A* y, size_t d = 0, int64_t tap = 0, int64_t place = 0,
           int64_t at = 0) const {
    const Dimension& dimension = dimensions_[d];
    tap *= static_cast<int64_t>(dimension.taps.size());
    place *= dimension.places, at *= dimension.image;
    const size_t left = dimensions_.size() - d;
    for (const TapLine& line : dimension.taps) {
      if (left == 1) {
        add_lines({0, 1, 0, 0}, line, x + tap * count_ + place, y + at);
      } else if (left == 2) {
        add_planes(line, x, y, tap, place, at);
      } else {
        for (int64_t p = line.begin; p < line.end; ++p) {
          add(x, y, d + 1, tap, place + p, at + line.first + (p - line.begin) * line.stride);
        }
      }
      ++tap;
    }
  }

 private:
  // A tap of the last dimension but one, with every tap of the last.
  void add_planes(const TapLine& rows, const A* x, A* y, int64_t tap, int64_t place,
                  int64_t at) const {
    const Dimension& last = dimensions_.back();
    tap *= static_cast<int64_t>(last.taps.size());
    for (const TapLine& line : last.taps) {
      add_lines(rows, line, x + tap++ * count_ + place * last.places, y + at * last.image);
    }
  }

  void add_lines(const TapLine& rows, const TapLine& line, const A* x, A* y) const {
    const Dimension& last = dimensions_.back();
    x += rows.begin * last.places + line.begin;
    y += rows.first * last.image + line.first;
    const int64_t stride = rows.stride * last.image;
    add_(rows.end - rows.begin, line.end - line.begin, y, stride, {y, stride, nullptr},
         {x, last.places, nullptr});
  }

  const std::vector<Dimension>& dimensions_;
  int64_t count_;
  BinaryFn add_ =
      kernels().binary[static_cast<int>(std::is_same_v<A, float> ? Elem::F32 : Elem::F64)]
                      [static_cast<int>(BinaryOp::Add)][static_cast<int>(Mode::VV)];
};

// The type of sums, which round once to the element's.
template <typename T>
using SumOf = std::conditional_t<kIsInteger<T> || std::is_same_v<T, bool>, double, Arithmetic<T>>;

struct Planes {
  std::vector<Dimension> dimensions;
  std::vector<int64_t> elements;       // as divide_phases; empty without phases
  int64_t columns, count, size, sums;  // of a channel: of its columns, places, image and sums
};

template <typename A>
void join_phases(const Planes& p, const A* sums, int64_t channels, A* image) {
  const auto width = static_cast<int64_t>(p.elements.size());
  MoveArgs args;
  args.rows = channels * p.size / width, args.columns = width;
  args.from = sums, args.size = channels * p.sums;
  args.row_stride = p.dimensions.back().image;
  args.column_offsets = p.elements.data();
  args.out = image, args.out_stride = width;
  kernels().move[sizeof(A) == 4 ? 2 : 3](args);
}

// Sums of the channels [begin, end), of several at once.
template <typename T>
void add_channels(const Planes& p, const T* x, T* y, int64_t begin, int64_t end) {
  using A = SumOf<T>;
  constexpr bool kOwn = std::is_same_v<A, T>;
  constexpr int64_t kSums = 1 << 14;
  const int64_t most = std::clamp<int64_t>(kSums / (p.sums + 1), 1, end - begin);
  const bool phases = !p.elements.empty();
  const auto wide = scratch<A>(kOwn ? 0 : most * p.columns);
  const auto image = scratch<A>(kOwn ? 0 : most * p.size);
  const auto sums = scratch<A>(phases ? most * p.sums : 0);
  const PlaneSum<A> plane(p.dimensions, p.count);
  for (int64_t c = begin; c < end; c += most) {
    const int64_t channels = std::min(most, end - c);
    const T* from = x + c * p.columns;
    T* to = y + c * p.size;
    const A* columns = wide.get();
    A* result = image.get();
    if constexpr (kOwn) {
      columns = from, result = to;
    } else {
      for (int64_t i = 0; i < channels * p.columns; ++i) wide[i] = static_cast<A>(from[i]);
    }
    A* into = phases ? sums.get() : result;
    std::fill_n(into, channels * p.sums, A(0));
    for (int64_t i = 0; i < channels; ++i) plane.add(columns + i * p.columns, into + i * p.sums);
    if (phases) join_phases(p, into, channels, result);
    if constexpr (!kOwn) {
      for (int64_t i = 0; i < channels * p.size; ++i) to[i] = saturated<T>(result[i]);
    }
  }
}

}  // namespace

// Every column adds its block to the image, where the convolution would have read it.
void run_col2im(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const Dims& in = x.dims();
  const std::vector<int64_t> image = call.integers_of(1), block = call.integers_of(2);
  const size_t rank = image.size();
  const Geometry g(call, rank);
  if (block.size() != rank || rank == 0) call.fail("image_shape and block_shape differ in rank");
  int64_t count = 1;
  for (size_t d = 0; d < rank; ++d) {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    if (image[d] < 0 || image[d] > kMax || block[d] < 1 || block[d] > kMax) {
      call.fail("image_shape or block_shape");
    }
    count *= places_of(image[d], block[d], g, d);
  }
  const int64_t taps = element_count(block), plane = element_count(image);
  if (taps == 0 || in[1] % taps != 0 || in[2] != count) call.fail("the columns do not fit");
  Dims dims{in[0], in[1] / taps};
  dims.insert(dims.end(), image.begin(), image.end());
  Tensor& y = call.allocate(0, dims);
  if (x.size() == 0) {
    std::memset(y.mutable_data(), 0, y.bytes());
    return;
  }
  Planes planes{{}, {}, taps * count, count, plane, plane};
  for (size_t d = 0; d < rank; ++d) {
    planes.dimensions.push_back(dimension_of(image[d], block[d], g, d));
  }
  if (g.strides.back() > 1 && plane > 0) {
    planes.elements = divide_phases(planes.dimensions.back());
    planes.sums = plane / image.back() * planes.dimensions.back().image;
  }
  const int64_t grain = 1 + (1 << 14) / (planes.columns + 1);
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_ranges(call.threads(), in[0] * dims[1], grain, [&](int64_t begin, int64_t end) {
      add_channels(planes, x.as<T>(), y.as<T>(), begin, end);
    });
  });
}

}  // namespace redfuser::cpu
