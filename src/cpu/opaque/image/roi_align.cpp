// Regions of interest by bilinear samples. The samples of a part of a box are the same in all
// channels, which lie side by side while they are sampled.
#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"
#include "cpu/simd/kernel_table.h"
#include "cpu/simd/moves/weighted_rows.h"

namespace redfuser::cpu {
namespace {

struct RoiAlign {
  int64_t channels, height, width, out_height, out_width, ratio;
  double scale, offset;
  bool half, maximum;
};

RoiAlign read_roi_align(const OpaqueCall& call) {
  const Dims& in = call.dims(0);
  RoiAlign a{};
  a.channels = in[1], a.height = in[2], a.width = in[3];
  a.out_height = call.integer("output_height", 1), a.out_width = call.integer("output_width", 1);
  if (call.dims(1)[1] != 4 || call.tensor(2).size() != call.dims(1)[0] || a.out_height < 1 ||
      a.out_width < 1) {
    call.fail("boxes, batch indices or output sizes");
  }
  if (a.height == 0 || a.width == 0) call.fail("the image has no elements to sample");
  a.scale = call.real("spatial_scale", 1);
  a.ratio = call.integer("sampling_ratio", 0);
  constexpr int64_t kMaxRatio = 4096;
  if (a.ratio > kMaxRatio) call.fail(fmt::format("a sampling_ratio of {}", a.ratio));
  a.maximum = call.text("mode", "avg") == "max";
  const std::string fallback = call.opset() < 16 ? "output_half_pixel" : "half_pixel";
  a.half = call.text("coordinate_transformation_mode", fallback) == "half_pixel";
  a.offset = a.half ? 0.5 : 0;
  return a;
}

// A box in elements of the image, in parts of `bin` elements, with so many samples in each.
struct Box {
  double top, left, bin_height, bin_width;
  int64_t down, across;
};

Box box_of(const OpaqueCall& call, const RoiAlign& a, const double* corners) {
  if (!std::isfinite(a.scale * (corners[0] + corners[1] + corners[2] + corners[3]))) {
    call.fail("a box is not finite");
  }
  Box box{};
  box.left = corners[0] * a.scale - a.offset, box.top = corners[1] * a.scale - a.offset;
  double width = corners[2] * a.scale - a.offset - box.left;
  double height = corners[3] * a.scale - a.offset - box.top;
  if (!a.half) width = std::max(width, 1.0), height = std::max(height, 1.0);
  box.bin_height = height / static_cast<double>(a.out_height);
  box.bin_width = width / static_cast<double>(a.out_width);
  constexpr double kMaxSamples = 4096;
  if (!(box.bin_height < kMaxSamples && box.bin_width < kMaxSamples)) {
    call.fail("a box is too large");
  }
  const auto samples = [&](double bin) {
    return a.ratio > 0 ? a.ratio : static_cast<int64_t>(std::ceil(std::max(bin, 0.0)));
  };
  box.down = samples(box.bin_height), box.across = samples(box.bin_width);
  return box;
}

// The two elements around a point of a line or column, and the weight of the second one. A point
// beyond the last element takes the last element's value; one outside by more than one element
// takes none.
struct Sample {
  int64_t low = 0, high = 0;
  double part = 0;
  bool inside = false;
};

Sample sample_at(double at, int64_t size) {
  if (at < -1 || at > static_cast<double>(size)) return {};
  at = std::max(at, 0.0);
  const auto low = static_cast<int64_t>(at);
  if (low >= size - 1) return {size - 1, size - 1, 0, true};
  return {low, low + 1, at - static_cast<double>(low), true};
}

// Of `samples` points in each of `parts` parts of a box's side.
ChargedVector<Sample> samples_of(double begin, double part, int64_t parts, int64_t samples,
                                 int64_t size) {
  ChargedVector<Sample> result;
  for (int64_t i = 0; i < parts; ++i) {
    for (int64_t s = 0; s < samples; ++s) {
      const double at =
          static_cast<double>(i) + (static_cast<double>(s) + 0.5) / static_cast<double>(samples);
      result.push_back(sample_at(begin + at * part, size));
    }
  }
  return result;
}

struct BoxSamples {
  ChargedVector<Sample> lines, columns;
  BoxSamples(const RoiAlign& a, const Box& box)
      : lines(samples_of(box.top, box.bin_height, a.out_height, box.down, a.height)),
        columns(samples_of(box.left, box.bin_width, a.out_width, box.across, a.width)) {}
};

// The elements of one image that boxes sample, with their channels side by side: of each line
// columns [low, high).
template <typename T>
class SampledImage {
 public:
  explicit SampledImage(const RoiAlign& a)
      : pitch_((a.channels + kWeightedColumns - 1) / kWeightedColumns * kWeightedColumns),
        lines_(static_cast<size_t>(a.height)) {}

  void add(const BoxSamples& box) {
    int64_t low = std::numeric_limits<int64_t>::max(), high = 0;
    for (const Sample& s : box.columns) {
      if (s.inside) low = std::min(low, s.low), high = std::max(high, s.high + 1);
    }
    if (low >= high) return;
    for (const Sample& s : box.lines) {
      for (const int64_t line : {s.low, s.high}) {
        Line& l = lines_[static_cast<size_t>(line)];
        if (s.inside) l.low = std::min(l.low, low), l.high = std::max(l.high, high);
      }
    }
  }

  // `image` has the channels one after the other.
  void load(const RoiAlign& a, const T* image, ThreadPool& threads) {
    int64_t elements = 0;
    for (Line& l : lines_) {
      l.at = elements * pitch_;
      elements += std::max<int64_t>(l.high - l.low, 0);
    }
    require_memory(element_count({elements, pitch_}), sizeof(T));
    memory_ = scratch<T>(elements * pitch_);
    const int64_t plane = a.height * a.width;
    threads.parallel_for(a.height, [&](int64_t h, int) {
      const Line& l = lines_[static_cast<size_t>(h)];
      if (l.low >= l.high) return;
      MoveArgs move;
      move.rows = l.high - l.low, move.columns = a.channels;
      move.from = image + h * a.width + l.low;
      move.size = a.channels * plane - h * a.width - l.low;
      move.row_stride = 1, move.column_stride = plane;
      move.out = memory_.get() + l.at, move.out_stride = pitch_;
      kernels().move[sizeof(T) == 4 ? 2 : 3](move);
    });
  }

  const T* data() const { return memory_.get(); }
  int64_t pitch() const { return pitch_; }
  // Of the channels of an element.
  int64_t offset(int64_t line, int64_t column) const {
    const Line& l = lines_[static_cast<size_t>(line)];
    return l.at + (column - l.low) * pitch_;
  }

 private:
  struct Line {
    int64_t low = std::numeric_limits<int64_t>::max(), high = 0, at = 0;
  };
  int64_t pitch_;
  ChargedVector<Line> lines_;
  ScratchArray<T> memory_;
};

// The sums or maxima of part (i, j) of a box in every channel, some samples at a time.
template <typename T>
void pool_part(const RoiAlign& a, const Box& box, const BoxSamples& samples, int64_t i, int64_t j,
               const SampledImage<T>& image, T* totals) {
  constexpr size_t kTogether = 256;
  std::array<int64_t, kTogether> offsets;
  std::array<T, kTogether> weights;
  WeightedRowsArgs args;
  args.maximum = a.maximum, args.columns = a.channels;
  args.offsets = offsets.data(), args.weights = weights.data();
  args.from = image.data(), args.out = totals;
  const auto fold = sizeof(T) == 4 ? kernels().weighted_rows_f32 : kernels().weighted_rows_f64;
  size_t count = 0;
  bool any = false, zero = box.down == 0 || box.across == 0;
  const auto flush = [&] {
    if (!any)
      std::fill_n(totals, image.pitch(), a.maximum ? -std::numeric_limits<T>::infinity() : T(0));
    any = true;
    args.count = static_cast<int64_t>(count);
    fold(args);
    count = 0;
  };
  const auto add = [&](int64_t line, int64_t column, double weight) {
    // Infinite and NaN elements with a weight of zero are left out.
    if (weight == 0) {
      zero = true;
      return;
    }
    offsets[count] = image.offset(line, column), weights[count++] = static_cast<T>(weight);
  };
  for (int64_t s = 0; s < box.down; ++s) {
    const Sample& y = samples.lines[static_cast<size_t>(i * box.down + s)];
    for (int64_t t = 0; t < box.across; ++t) {
      const Sample& x = samples.columns[static_cast<size_t>(j * box.across + t)];
      if (!y.inside || !x.inside) {
        zero = true;
        continue;
      }
      if (count + 4 > kTogether) flush();
      add(y.low, x.low, (1 - y.part) * (1 - x.part));
      add(y.low, x.high, (1 - y.part) * x.part);
      add(y.high, x.low, y.part * (1 - x.part));
      add(y.high, x.high, y.part * x.part);
    }
  }
  flush();
  if (!a.maximum || !zero) return;
  for (int64_t c = 0; c < a.channels; ++c) totals[c] = totals[c] < T(0) ? T(0) : totals[c];
}

// y[channel, part] of a box; `totals` has room for image.pitch() elements of each part.
template <typename T>
void pool_box(const RoiAlign& a, const Box& box, const BoxSamples& samples,
              const SampledImage<T>& image, T* totals, T* y) {
  const int64_t parts = a.out_height * a.out_width, pitch = image.pitch();
  for (int64_t part = 0; part < parts; ++part) {
    pool_part(a, box, samples, part / a.out_width, part % a.out_width, image,
              totals + part * pitch);
  }
  if (!a.maximum) {
    const auto count = static_cast<T>(std::max<int64_t>(box.down * box.across, 1));
    kernels().binary[static_cast<int>(sizeof(T) == 4 ? Elem::F32 : Elem::F64)]
                    [static_cast<int>(BinaryOp::Div)][static_cast<int>(Mode::VS)](
                        parts, a.channels, totals, pitch, {totals, pitch}, {&count, 0});
  }
  MoveArgs move;
  move.rows = a.channels, move.columns = parts;
  move.from = totals, move.size = parts * pitch;
  move.row_stride = 1, move.column_stride = pitch;
  move.out = y, move.out_stride = parts;
  kernels().move[sizeof(T) == 4 ? 2 : 3](move);
}

// `batch` has the image of each box.
template <typename T>
void pool_boxes(const RoiAlign& a, const std::vector<Box>& boxes, const std::vector<int64_t>& batch,
                const T* x, T* y, ThreadPool& threads) {
  const int64_t parts = a.out_height * a.out_width;
  std::map<int64_t, std::vector<size_t>> images;
  for (size_t r = 0; r < boxes.size(); ++r) images[batch[r]].push_back(r);
  for (const auto& [image, own] : images) {
    SampledImage<T> sampled(a);
    std::deque<BoxSamples> samples;
    for (const size_t r : own) sampled.add(samples.emplace_back(a, boxes[r]));
    sampled.load(a, x + image * a.channels * a.height * a.width, threads);
    const int64_t size = element_count({parts, sampled.pitch()});
    require_memory(element_count({threads.size(), size}), sizeof(T));
    const auto totals = scratch<T>(threads.size() * size);
    threads.parallel_for(static_cast<int64_t>(own.size()), [&](int64_t i, int worker) {
      const size_t r = own[static_cast<size_t>(i)];
      pool_box(a, boxes[r], samples[static_cast<size_t>(i)], sampled, totals.get() + worker * size,
               y + static_cast<int64_t>(r) * a.channels * parts);
    });
  }
}

}  // namespace

void run_roi_align(OpaqueCall& call) {
  const RoiAlign a = read_roi_align(call);
  const ChargedVector<double> rois = call.reals_of(1);
  const std::vector<int64_t> batch = call.integers_of(2);
  const int64_t rows = call.dims(1)[0], images = call.dims(0)[0];
  std::vector<Box> boxes;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t n = batch[static_cast<size_t>(r)];
    if (n < 0 || n >= images) call.fail(fmt::format("batch index {} of {}", n, images));
    boxes.push_back(box_of(call, a, rois.data() + 4 * r));
  }
  const Tensor x = call.widened(0);
  Tensor y(x.dtype(), {rows, a.channels, a.out_height, a.out_width});
  if (x.dtype() == DType::Float64) {
    pool_boxes(a, boxes, batch, x.as<double>(), y.as<double>(), call.threads());
  } else {
    pool_boxes(a, boxes, batch, x.as<float>(), y.as<float>(), call.threads());
  }
  call.set(0, std::move(y));
}

}  // namespace redfuser::cpu
