#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/image/resample.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

// Numeric conversion that truncates and saturates, for interpolation of integers through float64.
Tensor convert_numbers(const Tensor& tensor, DType dtype, ThreadPool& pool) {
  Tensor result(dtype, tensor.dims());
  dispatch(tensor.dtype(), [&](auto from) {
    using From = typename decltype(from)::type;
    dispatch(dtype, [&](auto to) {
      using To = typename decltype(to)::type;
      const From* source = tensor.as<From>();
      To* target = result.as<To>();
      parallel_ranges(pool, tensor.size(), 1 << 14, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          target[i] = saturated<To>(static_cast<double>(source[i]));
        }
      });
    });
  });
  return result;
}

// Microseconds of a pass along one axis that makes so many elements, runs of `inner` of them alike.
double pass_time(int64_t elements, int64_t inner, int64_t taps) {
  constexpr int64_t kLong = 16;
  const double rate = inner >= kLong ? 6000 : 1500;  // of taps
  return static_cast<double>(elements * taps) / rate;
}

// The axes that change, in the order of least time.
std::vector<size_t> pass_order(const Dims& dims, const std::vector<ResampleAxis>& axes,
                               const std::vector<size_t>& changed, int64_t taps, double* time) {
  constexpr size_t kMostOrdered = 4;
  std::vector<size_t> order = changed, best = changed;
  *time = HUGE_VAL;
  do {
    Dims sizes = dims;
    double sum = 0;
    for (const size_t d : order) {
      sizes[d] = axes[d].output;
      sum += pass_time(element_count(sizes), around_axis(sizes, static_cast<int>(d)).inner, taps);
    }
    if (sum < *time) *time = sum, best = order;
  } while (order.size() <= kMostOrdered && std::next_permutation(order.begin(), order.end()));
  return best;
}

int64_t taps_of(const std::string& mode) {
  return mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
}

Tensor resize(const OpaqueCall& call, Tensor x, const std::vector<ResampleAxis>& axes,
              const ResampleOptions& options, double outside, DType computing) {
  const bool crop = options.coordinates == "tf_crop_and_resize";
  std::vector<size_t> changed;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].input != axes[d].output || axes[d].scale != 1 || crop) changed.push_back(d);
  }
  double time = 0;
  for (const size_t d : pass_order(x.dims(), axes, changed, taps_of(options.mode), &time)) {
    Dims dims = x.dims();
    dims[d] = axes[d].output;
    Tensor y(computing, dims);  // first: a size beyond all memory ends here
    resample(around_axis(x.dims(), static_cast<int>(d)), make_resample_table(axes[d], options), x,
             y, outside, options.mode == "nearest", call.threads());
    x = std::move(y);
  }
  return x.dtype() == computing ? x : convert_numbers(x, computing, call.threads());
}

std::vector<int> resized_axes(const OpaqueCall& call, int rank) {
  std::vector<int> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (!call.has("axes")) return axes;
  axes.clear();
  for (int64_t axis : call.integers("axes", {})) axes.push_back(call.axis(axis, rank));
  return axes;
}

int64_t checked_size(const OpaqueCall& call, double size) {
  if (!(size < 0x1p52)) call.fail(fmt::format("size {} is too large", size));
  return static_cast<int64_t>(size);
}

void apply_scales(const OpaqueCall& call, const ChargedVector<double>& scales,
                  const std::vector<int>& which, std::vector<ResampleAxis>& axes) {
  if (scales.size() != which.size()) {
    call.fail(fmt::format("{} scales for {} axes", scales.size(), which.size()));
  }
  for (size_t i = 0; i < which.size(); ++i) {
    ResampleAxis& axis = axes[which[i]];
    if (!(scales[i] > 0)) call.fail(fmt::format("scale {} is not positive", scales[i]));
    axis.scale = scales[i];
    // In float32, the type of the scales: 10 * 0.7f is 7 there.
    const float size = std::floor(static_cast<float>(axis.input) * static_cast<float>(scales[i]));
    axis.output = checked_size(call, size);
  }
}

void apply_sizes(const OpaqueCall& call, const std::vector<int64_t>& sizes,
                 const std::vector<int>& which, std::vector<ResampleAxis>& axes) {
  if (sizes.size() != which.size()) {
    call.fail(fmt::format("{} sizes for {} axes", sizes.size(), which.size()));
  }
  std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  ChargedVector<double> scales(sizes.size());
  for (size_t i = 0; i < which.size(); ++i) {
    if (sizes[i] <= 0) call.fail(fmt::format("size {} is not positive", sizes[i]));
    ResampleAxis& axis = axes[which[i]];
    axis.output = sizes[i];
    axis.scale = scales[i] =
        static_cast<double>(sizes[i]) / static_cast<double>(std::max<int64_t>(axis.input, 1));
  }
  if (policy == "stretch") return;
  double common = policy == "not_larger" ? *std::min_element(scales.begin(), scales.end())
                                         : *std::max_element(scales.begin(), scales.end());
  for (int d : which) {
    axes[d].scale = common;
    axes[d].output =
        checked_size(call, std::floor(common * static_cast<double>(axes[d].input) + 0.5));
  }
}

ResampleOptions read_options(const OpaqueCall& call) {
  ResampleOptions options;
  bool early = call.opset() < 11;  // Resize-10 and Upsample have no coordinate modes
  options.mode = call.text("mode", "nearest");
  if (options.mode == "bilinear") options.mode = "linear";
  options.coordinates =
      call.text("coordinate_transformation_mode", early ? "asymmetric" : "half_pixel");
  options.nearest = call.text("nearest_mode", early ? "floor" : "round_prefer_floor");
  options.cubic_a = call.real("cubic_coeff_a", -0.75);
  options.antialias = call.integer("antialias", 0) != 0;
  options.exclude_outside = call.integer("exclude_outside", 0) != 0;
  return options;
}

std::vector<ResampleAxis> unit_axes(const Dims& dims) {
  std::vector<ResampleAxis> axes;
  for (int64_t dim : dims) axes.push_back({dim, dim, 1, 0, 1});
  return axes;
}

void run_with(OpaqueCall& call, const std::vector<ResampleAxis>& axes) {
  const Tensor& x = call.tensor(0);
  ResampleOptions options = read_options(call);
  double outside = call.real("extrapolation_value", 0);
  if (x.size() == 0) {
    Dims dims;
    for (const ResampleAxis& axis : axes) dims.push_back(axis.output);
    if (element_count(dims) > 0) call.fail("cannot resize the empty input " + describe(x));
    call.allocate(0, dims);
  } else if (options.mode == "nearest") {
    call.set(0, resize(call, x, axes, options, outside, x.dtype()));
  } else if (is_float(x.dtype())) {
    const Tensor wide = call.widened(0);
    call.set(0, resize(call, wide, axes, options, outside, wide.dtype()));
  } else {
    const Tensor y = resize(call, x, axes, options, outside, DType::Float64);
    call.set(0, convert_numbers(y, x.dtype(), call.threads()));
  }
}

}  // namespace

void run_resize(OpaqueCall& call) {
  const Dims& dims = call.dims(0);
  bool early = call.opset() < 11;
  int roi = early ? -1 : 1, scales = early ? 1 : 2, sizes = early ? -1 : 3;
  std::vector<int> which = resized_axes(call, static_cast<int>(dims.size()));
  std::vector<ResampleAxis> axes = unit_axes(dims);
  if (sizes >= 0 && call.has_input(sizes) && call.tensor(sizes).size() > 0) {
    apply_sizes(call, call.integers_of(sizes), which, axes);
  } else if (call.has_input(scales)) {
    apply_scales(call, call.reals_of(scales), which, axes);
  } else {
    call.fail("neither scales nor sizes are given");
  }
  if (call.text("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    ChargedVector<double> region;
    if (roi >= 0 && call.has_input(roi)) region = call.reals_of(roi);
    if (region.size() != 2 * which.size()) {
      call.fail(fmt::format("roi has {} entries for {} axes", region.size(), which.size()));
    }
    for (size_t i = 0; i < which.size(); ++i) {
      axes[which[i]].begin = region[i];
      axes[which[i]].end = region[which.size() + i];
    }
  }
  run_with(call, axes);
}

OpaqueCost cost_of_resize(const ops::NodeView& view, std::span<const Dims> inputs,
                          const Dims& output) {
  std::string mode = view.text("mode", "nearest");
  if (mode == "bilinear") mode = "linear";
  if (mode == "nearest") return {HUGE_VAL, 0};  // elements that are only moved
  const std::vector<ResampleAxis> axes = [&] {
    std::vector<ResampleAxis> result;
    for (size_t d = 0; d < output.size(); ++d) result.push_back({inputs[0][d], output[d]});
    return result;
  }();
  std::vector<size_t> changed;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].input != axes[d].output) changed.push_back(d);
  }
  OpaqueCost cost{0, 0};
  Dims sizes = inputs[0];
  int64_t elements = 0;  // made by all passes
  for (const size_t d : pass_order(sizes, axes, changed, taps_of(mode), &cost.time)) {
    sizes[d] = axes[d].output;
    elements += element_count(sizes);
  }
  const DType dtype = view.dtype(0);
  const int64_t wide = dtype == DType::Float64 ? 8 : 4;
  if (dtype == DType::Float32 || dtype == DType::Float64) {
    cost.bytes = (elements - element_count(output)) * wide;
    return cost;
  }
  constexpr double kConverted = 1000;  // elements of 16 bits
  const int64_t ends = element_count(inputs[0]) + element_count(output);
  return {cost.time + static_cast<double>(ends) / kConverted,
          (element_count(inputs[0]) + elements) * wide};
}

void run_upsample(OpaqueCall& call) {
  const Dims& dims = call.dims(0);
  std::vector<int> which = resized_axes(call, static_cast<int>(dims.size()));
  std::vector<ResampleAxis> axes = unit_axes(dims);
  ChargedVector<double> scales;
  if (call.has_input(1)) {
    scales = call.reals_of(1);
  } else if (auto found = call.node().attributes.find("scales");
             found != call.node().attributes.end()) {
    if (const auto* values = std::get_if<std::vector<float>>(&found->second)) {
      scales.assign(values->begin(), values->end());
    }
  }
  apply_scales(call, scales, which, axes);
  run_with(call, axes);
}

}  // namespace redfuser::cpu
