#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

// Corners in increasing order; with `centered` the box is [x_center, y_center, width, height].
Box read_box(const float* at, bool centered) {
  if (centered) {
    float half_width = at[2] / 2, half_height = at[3] / 2;
    return {at[1] - half_height, at[0] - half_width, at[1] + half_height, at[0] + half_width};
  }
  return {std::min(at[0], at[2]), std::min(at[1], at[3]), std::max(at[0], at[2]),
          std::max(at[1], at[3])};
}

// The boxes that are kept so far, coordinate by coordinate, so that one is compared with many at
// once.
class KeptBoxes {
 public:
  int64_t size() const { return static_cast<int64_t>(numbers_.size()); }
  const ChargedVector<int64_t>& numbers() const { return numbers_; }

  void add(int64_t number, const Box& box) {
    numbers_.push_back(number);
    const float values[] = {box.y1, box.x1, box.y2, box.x2, box.area()};
    for (size_t i = 0; i < std::size(values); ++i) coordinates_[i].push_back(values[i]);
  }

  // Whether the intersection of `box` and a kept one is above `threshold` of their union.
  bool overlap(const Box& box, float threshold) const {
    constexpr int64_t kTogether = 64;
    if (box.area() <= 0) return false;
    for (int64_t begin = 0; begin < size(); begin += kTogether) {
      if (overlap(box, threshold, begin, std::min(begin + kTogether, size()))) return true;
    }
    return false;
  }

 private:
  bool overlap(const Box& box, float threshold, int64_t begin, int64_t end) const {
    const float *y1 = coordinates_[0].data(), *x1 = coordinates_[1].data(),
                *y2 = coordinates_[2].data(), *x2 = coordinates_[3].data(),
                *areas = coordinates_[4].data();
    const float area = box.area();
    int found = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float height = std::min(box.y2, y2[i]) - std::max(box.y1, y1[i]);
      const float width = std::min(box.x2, x2[i]) - std::max(box.x1, x1[i]);
      const float common = height * width;
      found |= static_cast<int>(height > 0) & static_cast<int>(width > 0) &
               static_cast<int>(areas[i] > 0) &
               static_cast<int>(common / (area + areas[i] - common) > threshold);
    }
    return found != 0;
  }

  ChargedVector<int64_t> numbers_;
  ChargedVector<float> coordinates_[5];
};

struct Limits {
  int64_t count = 0;
  float overlap = 0, score = -std::numeric_limits<float>::infinity();
};

// Indices of the boxes kept for one class, best first; equal scores keep their order.
ChargedVector<int64_t> suppress(const ChargedVector<Box>& boxes, const float* scores,
                                const Limits& limits) {
  ChargedVector<int64_t> candidates;
  for (int64_t i = 0; i < static_cast<int64_t>(boxes.size()); ++i) {
    if (scores[i] > limits.score) candidates.push_back(i);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  KeptBoxes kept;
  for (int64_t candidate : candidates) {
    if (kept.size() >= limits.count) break;
    if (!kept.overlap(boxes[candidate], limits.overlap)) kept.add(candidate, boxes[candidate]);
  }
  return kept.numbers();
}

}  // namespace

void run_non_max_suppression(OpaqueCall& call) {
  const Tensor &boxes = call.tensor(0), &scores = call.tensor(1);
  if (boxes.dims().size() != 3 || scores.dims().size() != 3 || boxes.dims()[2] != 4 ||
      boxes.dims()[0] != scores.dims()[0] || boxes.dims()[1] != scores.dims()[2] ||
      boxes.dtype() != DType::Float32 || scores.dtype() != DType::Float32) {
    call.fail("boxes " + describe(boxes) + " and scores " + describe(scores) +
              " must be float32[batch,n,4] and float32[batch,classes,n]");
  }
  Limits limits;
  if (call.has_input(2)) limits.count = call.integer_of(2);
  if (call.has_input(3)) limits.overlap = static_cast<float>(call.real_of(3));
  if (call.has_input(4)) limits.score = static_cast<float>(call.real_of(4));
  bool centered = call.integer("center_point_box", 0) != 0;

  int64_t batches = scores.dims()[0], classes = scores.dims()[1], count = scores.dims()[2];
  ChargedVector<std::array<int64_t, 3>> selected;
  ChargedVector<Box> read(count);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const float* at = boxes.as<float>() + batch * count * 4;
    for (int64_t i = 0; i < count; ++i) read[i] = read_box(at + 4 * i, centered);
    for (int64_t c = 0; c < classes; ++c) {
      const float* row = scores.as<float>() + (batch * classes + c) * count;
      for (int64_t box : suppress(read, row, limits)) selected.push_back({batch, c, box});
    }
  }
  Tensor& y = call.allocate(0, {static_cast<int64_t>(selected.size()), 3});
  int64_t* out = y.as<int64_t>();
  for (const auto& row : selected) out = std::copy(row.begin(), row.end(), out);
}

}  // namespace redfuser::cpu
