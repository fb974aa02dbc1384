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

// Applies a table along one axis. `copy`: every tap has weight one (nearest).
template <typename T>
void resample(const AxisView& view, const ResampleTable& table, const T* x, T* y, T outside,
              bool copy, ThreadPool& pool) {
  auto output = static_cast<int64_t>(table.start.size()) - 1;
  int64_t grain = 1 + (1 << 13) / (view.inner + 1);
  parallel_ranges(pool, view.outer * output, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* source = x + row / output * view.size * view.inner;
      T* target = y + row * view.inner;
      int64_t first = table.start[row % output], last = table.start[row % output + 1];
      if (first == last) {
        std::fill(target, target + view.inner, outside);
      } else if (copy) {
        std::copy_n(source + table.index[first] * view.inner, view.inner, target);
      } else if constexpr (std::is_floating_point_v<T>) {
        std::fill(target, target + view.inner, T(0));
        for (int64_t t = first; t < last; ++t) {
          auto weight = static_cast<T>(table.weight[t]);
          const T* line = source + table.index[t] * view.inner;
          for (int64_t i = 0; i < view.inner; ++i) target[i] += weight * line[i];
        }
      }
    }
  });
}

// The same along the innermost dimension: each element is a sum over few of its line.
template <typename T>
void resample_lines(const AxisView& view, const ResampleTable& table, const T* x, T* y, T outside,
                    bool copy, ThreadPool& pool) {
  using W = std::conditional_t<std::is_floating_point_v<T>, T, float>;
  const std::vector<W> weights(table.weight.begin(), table.weight.end());
  const auto output = static_cast<int64_t>(table.start.size()) - 1;
  const int64_t grain = 1 + (1 << 13) / (output + 1);
  parallel_ranges(pool, view.outer, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const T* source = x + line * view.size;
      T* target = y + line * output;
      for (int64_t o = 0; o < output; ++o) {
        const int64_t first = table.start[o], last = table.start[o + 1];
        if (first == last || copy) {
          target[o] = first == last ? outside : source[table.index[first]];
        } else if constexpr (std::is_floating_point_v<T>) {
          T sum = 0;
          for (int64_t t = first; t < last; ++t) sum += weights[t] * source[table.index[t]];
          target[o] = sum;
        }
      }
    }
  });
}

// Numeric conversion that truncates and saturates, for interpolation of integers through float64.
Tensor convert_numbers(const Tensor& tensor, DType dtype) {
  Tensor result(dtype, tensor.dims());
  dispatch(tensor.dtype(), [&](auto from) {
    using From = typename decltype(from)::type;
    dispatch(dtype, [&](auto to) {
      using To = typename decltype(to)::type;
      for (int64_t i = 0; i < tensor.size(); ++i) {
        result.as<To>()[i] = saturated<To>(static_cast<double>(tensor.as<From>()[i]));
      }
    });
  });
  return result;
}

Tensor resize(const OpaqueCall& call, Tensor x, const std::vector<ResampleAxis>& axes,
              const ResampleOptions& options, double outside) {
  for (size_t d = 0; d < axes.size(); ++d) {
    bool crop = options.coordinates == "tf_crop_and_resize";
    if (axes[d].input == axes[d].output && axes[d].scale == 1 && !crop) continue;
    AxisView view = around_axis(x.dims(), static_cast<int>(d));
    Dims dims = x.dims();
    dims[d] = axes[d].output;
    Tensor y(x.dtype(), dims);  // first: a size beyond all memory ends here
    ResampleTable table = make_resample_table(axes[d], options);
    dispatch(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T fill = saturated<T>(outside);
      const auto along = view.inner == 1 ? resample_lines<T> : resample<T>;
      along(view, table, x.as<T>(), y.as<T>(), fill, options.mode == "nearest", call.threads());
    });
    x = std::move(y);
  }
  return x;
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
    call.set(0, resize(call, x, axes, options, outside));
  } else if (is_float(x.dtype())) {
    call.set(0, resize(call, call.widened(0), axes, options, outside));
  } else {
    Tensor y = resize(call, convert_numbers(x, DType::Float64), axes, options, outside);
    call.set(0, convert_numbers(y, x.dtype()));
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
