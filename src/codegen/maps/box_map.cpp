#include "codegen/maps/box_map.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "codegen/contraction/divide_axis.h"
#include "codegen/elementwise/aligned_accesses.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

constexpr int64_t kRun = 128;  // bytes of memory that a box has in a line, where it can
constexpr int64_t kSharedBytes = 16 * 1024;  // of operands in a box
constexpr int64_t kEnough = 2048;            // points of a box

// The strides of an offset along each axis; empty where it is not affine.
std::vector<ir::Expr> strides_of(ir::ExprPool& pool, ir::Expr offset,
                                 const std::vector<ir::Expr>& axes) {
  const auto parts = strided(pool, offset, axes);
  return parts ? parts->strides : std::vector<ir::Expr>();
}

// The parts of axes that a box has.
class Sides {
 public:
  explicit Sides(const std::vector<ir::Expr>& axes) : axes_(axes), points_(axes.size(), 1) {}

  int64_t points(size_t axis) const { return points_[axis]; }
  int64_t total() const {
    int64_t product = 1;
    for (const int64_t each : points_) product *= each;
    return product;
  }
  // Adjacent points in memory with these strides.
  int64_t run(const std::vector<ir::Expr>& strides) const {
    int64_t points = 1;
    std::optional<size_t> axis;
    while ((axis = with_stride(strides, points))) {
      points *= points_[*axis];
      if (!whole(*axis)) break;
    }
    return points;
  }
  // Multiplies the run's points by about `factor` along its next axis, up to `most` points of the
  // box. Returns false where the run has all axes already, or the box is full.
  bool extend(const std::vector<ir::Expr>& strides, int64_t factor, int64_t most) {
    int64_t points = 1;
    std::optional<size_t> axis;
    while ((axis = with_stride(strides, points)) && whole(*axis)) points *= points_[*axis];
    if (!axis) return false;
    const int64_t room = most / (total() / points_[*axis]);
    const int64_t part = part_of(*axis, std::min(points_[*axis] * factor, room), room);
    if (part <= points_[*axis]) return false;
    points_[*axis] = part;
    return true;
  }

 private:
  bool whole(size_t axis) const { return axes_[axis]->extent()->is_constant(points_[axis]); }

  std::optional<size_t> with_stride(const std::vector<ir::Expr>& strides, int64_t stride) const {
    for (size_t i = 0; i < axes_.size(); ++i) {
      const bool one = axes_[i]->extent()->is_constant(1);
      if (!one && strides[i]->is_constant(stride)) return i;
    }
    return std::nullopt;
  }

  // About `wanted` points: all of an axis that has few more, or else a number that divides them.
  int64_t part_of(size_t axis, int64_t wanted, int64_t room) const {
    const ir::Expr extent = axes_[axis]->extent();
    if (!extent->is_constant()) return wanted;
    if (extent->integer <= std::min(2 * wanted, room)) return extent->integer;
    for (int64_t part = wanted; part <= std::min(2 * wanted, room); ++part) {
      if (extent->integer % part == 0) return part;
    }
    return wanted;
  }

  const std::vector<ir::Expr>& axes_;
  std::vector<int64_t> points_;
};

// A box that has lines of kRun bytes of the results and of the operand, where they have such lines,
// and enough points.
Sides sides_of(const MapShape& shape, const std::vector<ir::Expr>& stored, int64_t stored_bytes,
               const std::vector<ir::Expr>& read, int64_t read_bytes, int64_t most) {
  Sides sides(shape.axes);
  const auto needed = [&](const std::vector<ir::Expr>& strides, int64_t bytes) {
    const int64_t run = sides.run(strides) * bytes;
    const int64_t longer = run < kRun ? (kRun + run - 1) / run : 1;
    return longer > 1 ? longer : (kEnough + sides.total() - 1) / sides.total();
  };
  for (;;) {
    const bool reads_first = sides.run(read) * read_bytes < sides.run(stored) * stored_bytes;
    const auto grow = [&](bool reads) {
      const std::vector<ir::Expr>& strides = reads ? read : stored;
      const int64_t factor = needed(strides, reads ? read_bytes : stored_bytes);
      return factor > 1 && sides.extend(strides, factor, most);
    };
    if (!grow(reads_first) && !grow(!reads_first)) return sides;
  }
}

// An axis of a shape in blocks' parts and a box's.
struct Parts {
  ir::Expr outside, whole;  // whole = the axis by both
  BoxAxis inside;
};

Parts parts_of(ir::ExprPool& pool, ir::Expr axis, int64_t points) {
  const ir::Expr extent = axis->extent();
  if (points == 1) return {axis, axis, {nullptr, 1, nullptr}};
  if (extent->is_constant(points)) return {nullptr, axis, {axis, points, nullptr}};
  const ir::Expr part = pool.axis("part", ceil_div(pool, extent, points)),
                 place = pool.axis("place", pool.integer(points)),
                 first = pool.mul(part, pool.integer(points));
  const bool divides = extent->is_constant() && extent->integer % points == 0;
  return {
      part, pool.add(first, place), {place, points, divides ? nullptr : pool.sub(extent, first)}};
}

// The box's axes in the order of an operand's memory.
std::vector<BoxAxis> in_order(const std::vector<BoxAxis>& inside,
                              const std::vector<ir::Expr>& strides) {
  std::vector<size_t> order(inside.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto distance = [&](size_t i) {
    const bool known = strides[i]->is_constant() && strides[i]->integer != 0;
    return known ? static_cast<double>(std::abs(strides[i]->integer)) : HUGE_VAL;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return distance(a) > distance(b); });
  std::vector<BoxAxis> result;
  for (const size_t i : order) result.push_back(inside[i]);
  return result;
}

// Whether the read takes elements of another axis one after the other than the results do.
bool turns(ir::Expr read, const std::vector<ir::Expr>& strides) {
  if (strides.empty()) return false;
  const ir::Expr inner = strides.back();
  const bool adjacent = std::any_of(strides.begin(), strides.end() - 1,
                                    [](ir::Expr stride) { return stride->is_constant(1); });
  return read->integer >= 0 && adjacent && !inner->is_constant(0) && !inner->is_constant(1);
}

// One store has its axes' digits as axes of their own: reads by ⌊m / k⌋ and m mod k then lie along
// axes.
MapShape with_digits(ir::ExprPool& pool, MapShape shape) {
  while (shape.stores.size() == 1) {
    auto divided = divide_axis(pool, shape.axes, shape.stores.front());
    if (!divided) break;
    shape = {std::move(divided->axes), {std::move(divided->store)}};
  }
  return shape;
}

}  // namespace

int64_t BoxMap::row_count() const {
  int64_t count = 1;
  for (const BoxAxis& axis : rows) count *= axis.points;
  return count;
}

int64_t BoxMap::shared_bytes() const {
  constexpr int64_t kAlignment = 16;
  int64_t bytes = 0;
  for (const BoxRead& each : reads) {
    const int64_t box = row_count() * pitch * static_cast<int64_t>(size_of(each.read->dtype));
    bytes += (box + kAlignment - 1) / kAlignment * kAlignment;
  }
  return bytes;
}

int64_t BoxMap::points_along() const {
  int64_t count = 1;
  for (const BoxAxis& axis : along) count *= axis.points;
  return count;
}

int64_t BoxMap::step_of(ir::Expr place) const {
  int64_t step = 1;
  for (size_t i = along.size(); i-- > 0; step *= along[i].points) {
    if (along[i].place == place) return step;
  }
  step = pitch;
  for (size_t i = rows.size(); i-- > 0; step *= rows[i].points) {
    if (rows[i].place == place) return step;
  }
  return 0;
}

std::variant<BoxMap, std::string> box_map(const KernelText& kernel, MapShape shape) {
  ir::ExprPool& pool = kernel.pool();
  if (has_reduce(shape.stores)) return "a point reduces elements";
  shape = with_digits(pool, std::move(shape));
  if (shape.axes.size() < 2) return "its points are one line";
  std::vector<ir::Expr> stored;
  int64_t stored_bytes = 16;
  for (const Store& store : shape.stores) {
    const std::vector<ir::Expr> strides = strides_of(pool, store.offset, shape.axes);
    if (strides.empty() || !strides.back()->is_constant(1)) return "its results are not adjacent";
    if (stored.empty()) stored = strides;
    stored_bytes = std::min<int64_t>(stored_bytes,
                                     static_cast<int64_t>(size_of(kernel.dtype_of(store.value))));
  }
  BoxMap map;
  std::vector<ir::Expr> first;  // strides of the largest operand
  int64_t first_bytes = 0, bytes = 0;
  for (ir::Expr read : reads_of(shape.stores)) {
    const std::vector<ir::Expr> strides = strides_of(pool, read->args[0], shape.axes);
    if (!turns(read, strides)) continue;
    const auto element = static_cast<int64_t>(size_of(read->dtype));
    if (element > first_bytes) {
      first = strides;
      first_bytes = element;
    }
    bytes += element;
    map.reads.push_back({read, {}, 1});
  }
  if (map.reads.empty()) return "no operand lies along another axis than the results";
  const Sides sides =
      sides_of(shape, stored, stored_bytes, first, first_bytes, kSharedBytes / bytes);
  std::vector<std::pair<ir::Expr, ir::Expr>> split;
  std::vector<BoxAxis> inside;
  for (size_t i = 0; i < shape.axes.size(); ++i) {
    const Parts parts = parts_of(pool, shape.axes[i], sides.points(i));
    if (parts.outside) map.outside.push_back(parts.outside);
    if (parts.inside.place) inside.push_back(parts.inside);
    if (parts.whole != shape.axes[i]) split.emplace_back(shape.axes[i], parts.whole);
  }
  if (inside.empty() || sides.run(stored) == 1) return "no room for a line of results";
  map.shape.axes = map.outside;
  for (const BoxAxis& axis : inside) map.shape.axes.push_back(axis.place);
  for (const Store& store : shape.stores) {
    map.shape.stores.push_back(
        {store.value, pool.substitute(store.body, split), pool.substitute(store.offset, split)});
  }
  std::vector<ir::Expr> places;
  for (const BoxAxis& axis : inside) places.push_back(axis.place);
  for (BoxRead& read : map.reads) {
    read.read = pool.substitute(read.read, split);
    const auto parts = strided(pool, read.read->args[0], places);
    if (!parts) return "an operand's offsets are not affine";
    read.axes = in_order(inside, parts->strides);
  }
  const auto adjacent = [&](size_t begin) {
    const std::vector<ir::Expr> axes(places.begin() + static_cast<long>(begin), places.end());
    return std::all_of(map.shape.stores.begin(), map.shape.stores.end(), [&](const Store& store) {
      return adjacent_from(pool, store.offset, axes) != nullptr;
    });
  };
  size_t begin = inside.size() - 1;
  while (begin > 0 && adjacent(begin - 1)) --begin;
  map.rows = {inside.begin(), inside.begin() + static_cast<long>(begin)};
  map.along = {inside.begin() + static_cast<long>(begin), inside.end()};
  map.stored_run = static_cast<double>(sides.run(stored) * stored_bytes);
  map.read_run = static_cast<double>(sides.run(first) * first_bytes);
  map.set_pitch(kernel);
  return map;
}

}  // namespace redfuser::codegen
