// Regions of interest by bilinear samples. The samples of a part of a box are the same in all
// channels.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"

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

struct Corner {
  int64_t element = 0;
  double weight = 0;
};

// The four elements around a point of a plane and their weights; none outside of it by more than
// one element. A point beyond the last element takes the last element's value.
void set_corners(double y, double x, const RoiAlign& a, Corner* corners) {
  std::fill_n(corners, 4, Corner{});
  if (y < -1 || y > static_cast<double>(a.height) || x < -1 || x > static_cast<double>(a.width)) {
    return;
  }
  const auto split = [](double at, int64_t size, int64_t& low, int64_t& high) {
    at = std::max(at, 0.0);
    low = static_cast<int64_t>(at);
    if (low >= size - 1) {
      low = high = size - 1;
      return 0.0;
    }
    high = low + 1;
    return at - static_cast<double>(low);
  };
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  const double v = split(y, a.height, top, bottom), h = split(x, a.width, left, right);
  corners[0] = {top * a.width + left, (1 - v) * (1 - h)};
  corners[1] = {top * a.width + right, (1 - v) * h};
  corners[2] = {bottom * a.width + left, v * (1 - h)};
  corners[3] = {bottom * a.width + right, v * h};
}

// The sums or maxima of part (i, j) of a box in every channel, some samples at a time.
template <typename T>
void pool_part(const RoiAlign& a, const Box& box, int64_t i, int64_t j, const T* image,
               double* totals) {
  constexpr int64_t kTogether = 64;
  std::array<Corner, 4 * kTogether> corners;
  const int64_t samples = box.down * box.across;
  std::fill_n(totals, a.channels, 0.0);
  for (int64_t first = 0; first < samples; first += kTogether) {
    const int64_t count = std::min(kTogether, samples - first);
    for (int64_t s = 0; s < count; ++s) {
      const auto at = [&](int64_t part, int64_t sample, int64_t parts) {
        return static_cast<double>(part) +
               (static_cast<double>(sample) + 0.5) / static_cast<double>(parts);
      };
      const double y = box.top + at(i, (first + s) / box.across, box.down) * box.bin_height;
      const double x = box.left + at(j, (first + s) % box.across, box.across) * box.bin_width;
      set_corners(y, x, a, corners.data() + 4 * s);
    }
    for (int64_t c = 0; c < a.channels; ++c) {
      const T* plane = image + c * a.height * a.width;
      double total = totals[c];
      for (int64_t k = 0; k < 4 * count; ++k) {
        const Corner& corner = corners[static_cast<size_t>(k)];
        const double part =
            corner.weight == 0 ? 0 : corner.weight * static_cast<double>(plane[corner.element]);
        const bool starts = first == 0 && k == 0;
        total = !a.maximum ? total + part : starts ? part : std::max(total, part);
      }
      totals[c] = total;
    }
  }
}

template <typename T>
void pool_box(const RoiAlign& a, const Box& box, const T* image, T* y, double* totals) {
  const auto samples = static_cast<double>(std::max<int64_t>(box.down * box.across, 1));
  const int64_t parts = a.out_height * a.out_width;
  for (int64_t part = 0; part < parts; ++part) {
    pool_part(a, box, part / a.out_width, part % a.out_width, image, totals);
    for (int64_t c = 0; c < a.channels; ++c) {
      y[c * parts + part] = static_cast<T>(a.maximum ? totals[c] : totals[c] / samples);
    }
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
  ChargedVector<double> totals(static_cast<size_t>(call.threads().size() * a.channels));
  const auto pool = [&]<typename T>(const T* from, T* to) {
    call.threads().parallel_for(rows, [&](int64_t r, int worker) {
      const int64_t image = batch[static_cast<size_t>(r)] * a.channels * a.height * a.width;
      pool_box(a, boxes[static_cast<size_t>(r)], from + image,
               to + r * a.channels * a.out_height * a.out_width,
               totals.data() + worker * a.channels);
    });
  };
  if (x.dtype() == DType::Float64) {
    pool(x.as<double>(), y.as<double>());
  } else {
    pool(x.as<float>(), y.as<float>());
  }
  call.set(0, std::move(y));
}

}  // namespace redfuser::cpu
