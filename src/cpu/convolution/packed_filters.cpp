#include "cpu/convolution/packed_filters.h"

#include <algorithm>
#include <cstring>

#include "base/dispatch.h"

namespace redfuser::cpu {
namespace {

template <typename T>
void pack_panel(const T* weights, int64_t filters, int64_t taps, int64_t width, T* to) {
  for (int64_t f = 0; f < width; ++f) {
    for (int64_t k = 0; k < taps; ++k)
      to[k * width + f] = f < filters ? weights[f * taps + k] : T(0);
  }
}

}  // namespace

FilterPanels::FilterPanels(const ConvolutionForm& form)
    : dtype_(form.dtype),
      groups_(form.shape.groups),
      filters_(form.filters()),
      taps_(form.taps()),
      lanes_(kernels().window_lanes_f32 / (form.dtype == DType::Float64 ? 2 : 1)),
      panels_(filters_ == 0 ? 0 : std::max<int64_t>((filters_ + lanes_ - 1) / lanes_ / 2, 1)),
      row_(panels_ == 0 ? 0 : first(panels_ - 1) + width(panels_ - 1)) {}

Tensor FilterPanels::pack_weights(const void* weights, ThreadPool* pool) const {
  Tensor packed(dtype_, {groups_ * row_ * taps_});
  const auto pack = [&]<typename T>(TypeTag<T>, int64_t task) {
    const int64_t group = task / panels_, panel = task % panels_;
    pack_panel(static_cast<const T*>(weights) + (group * filters_ + first(panel)) * taps_,
               filters(panel), taps_, width(panel), packed.as<T>() + weights_at(group, panel));
  };
  const auto run = [&](int64_t task, int) {
    dtype_ == DType::Float64 ? pack(TypeTag<double>{}, task) : pack(TypeTag<float>{}, task);
  };
  if (pool != nullptr) {
    pool->parallel_for(groups_ * panels_, run);
  } else {
    for (int64_t task = 0; task < groups_ * panels_; ++task) run(task, 0);
  }
  return packed;
}

Tensor FilterPanels::pack_bias(const void* bias) const {
  Tensor packed(dtype_, {groups_ * row_});
  const size_t bytes = size_of(dtype_);
  auto* to = static_cast<char*>(packed.mutable_data());
  std::memset(to, 0, static_cast<size_t>(packed.size()) * bytes);
  if (bias == nullptr) return packed;
  for (int64_t group = 0; group < groups_; ++group) {
    std::memcpy(to + static_cast<size_t>(group * row_) * bytes,
                static_cast<const char*>(bias) + static_cast<size_t>(group * filters_) * bytes,
                static_cast<size_t>(filters_) * bytes);
  }
  return packed;
}

}  // namespace redfuser::cpu
