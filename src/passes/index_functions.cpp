#include "passes/index_functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/dispatch.h"
#include "ir/graph.h"

namespace redfuser::passes {
namespace {

class Contents {
 public:
  explicit Contents(const Tensor& tensor)
      : data_(static_cast<const char*>(tensor.data())),
        width_(size_of(tensor.dtype())),
        dims_(tensor.dims()),
        count_(tensor.size()) {}

  std::optional<Band> band() const {
    Band result;
    if (!two_numbers(result)) return std::nullopt;
    if (result.outside < 0) return result;
    const std::vector<size_t> wide = varying();
    // Index vectors of few elements are constants themselves.
    if (wide.size() != 2 || std::min(dims_[wide[0]], dims_[wide[1]]) <= ir::kMaxElements) {
      return std::nullopt;
    }
    result.row = wide[0];
    result.column = wide[1];
    // Either of the two numbers may be inside the band.
    for (int side = 0; side < 2; ++side) {
      if (fits(result)) return result;
      std::swap(result.inside, result.outside);
    }
    return std::nullopt;
  }

  // The dimensions along which elements differ.
  std::vector<size_t> varying() const {
    std::vector<size_t> dims;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d] > 1 && !same_along(d)) dims.push_back(d);
    }
    return dims;
  }

  int64_t stride(size_t dim) const {
    int64_t size = 1;
    for (size_t d = dim + 1; d < dims_.size(); ++d) size *= dims_[d];
    return size;
  }

 private:
  bool same(int64_t a, int64_t b) const {
    return std::memcmp(data_ + static_cast<size_t>(a) * width_,
                       data_ + static_cast<size_t>(b) * width_, width_) == 0;
  }

  bool two_numbers(Band& band) const {
    for (int64_t i = 1; i < count_; ++i) {
      if (same(i, band.inside)) continue;
      if (band.outside < 0) band.outside = i;
      if (!same(i, band.outside)) return false;
    }
    return true;
  }

  bool same_along(size_t dim) const {
    const int64_t inner = stride(dim), line = inner * dims_[dim];
    const size_t bytes = static_cast<size_t>(inner) * width_;
    for (int64_t start = 0; start < count_; start += line) {
      const char* first = data_ + static_cast<size_t>(start) * width_;
      for (int64_t i = 1; i < dims_[dim]; ++i) {
        if (std::memcmp(first, first + static_cast<size_t>(i) * bytes, bytes) != 0) return false;
      }
    }
    return true;
  }

  // Sets the bounds to the distances of the inside number; true if it occurs at these distances and
  // nowhere else.
  bool fits(Band& band) const {
    const int64_t rows = dims_[band.row], columns = dims_[band.column];
    const int64_t down = stride(band.row), right = stride(band.column);
    bool any = false;
    auto inside = [&](int64_t i, int64_t j) { return same(i * down + j * right, band.inside); };
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        if (!inside(i, j)) continue;
        band.lowest = any ? std::min(band.lowest, j - i) : j - i;
        band.highest = any ? std::max(band.highest, j - i) : j - i;
        any = true;
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const bool near = j - i >= band.lowest && j - i <= band.highest;
        if (near != inside(i, j)) return false;
      }
    }
    return any;
  }

  const char* data_;
  size_t width_;
  Dims dims_;
  int64_t count_;
};

// Small enough that sums do not overflow and doubles are exact.
constexpr int64_t kLargest = int64_t{1} << 40;

// The element as an integer; nullopt if it is not one.
template <typename T>
std::optional<int64_t> integer_of(T element) {
  if constexpr (std::is_same_v<T, bool>) {
    return std::nullopt;
  } else {
    const auto number = static_cast<double>(static_cast<Arithmetic<T>>(element));
    if (!(std::fabs(number) < static_cast<double>(kLargest)) || std::trunc(number) != number) {
      return std::nullopt;
    }
    return static_cast<int64_t>(number);
  }
}

template <typename T>
std::optional<Progression> progression(const T* elements, int64_t count, int64_t stride) {
  const auto first = integer_of(elements[0]), second = integer_of(elements[stride]);
  if (!first || !second || *first == *second) return std::nullopt;
  const int64_t step = *second - *first;
  for (int64_t i = 2; i < count; ++i) {
    const auto element = integer_of(elements[i * stride]);
    if (!element || *element != *first + i * step) return std::nullopt;
  }
  return Progression{*first, step, 0};
}

bool holds_positions(DType dtype) {
  return dtype == DType::Int64 || dtype == DType::Int32 || dtype == DType::Float32 ||
         dtype == DType::Float64 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

}  // namespace

std::optional<Band> find_band(const Tensor& tensor) { return Contents(tensor).band(); }

std::optional<Progression> find_progression(const Tensor& tensor) {
  if (!holds_positions(tensor.dtype()) || tensor.size() < 2) return std::nullopt;
  const Contents contents(tensor);
  const std::vector<size_t> dims = contents.varying();
  if (dims.size() != 1) return std::nullopt;
  const int64_t count = tensor.dims()[dims[0]], stride = contents.stride(dims[0]);
  auto found = dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return progression(static_cast<const T*>(tensor.data()), count, stride);
  });
  if (found) found->dim = dims[0];
  return found;
}

}  // namespace redfuser::passes
