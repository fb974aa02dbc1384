#include "cpu/opaque/image/integers/position_conv.h"

#include <algorithm>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kBytes = 1 << 18;  // of a strip of the image, which stays near
constexpr int64_t kPositions = 192;  // whose sums are in the first-level cache
constexpr int64_t kMostLines = 256;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Output positions whose sums are made together: several lines, or a part of one.
struct Part {
  int64_t line, lines, column, columns;
};

class Strips {
 public:
  Strips(const PositionConvolution& g, int threads) : w_(g.shape.window) {
    const int64_t images = g.shape.batch * g.shape.groups, height = w_.output[1];
    const int64_t bytes = 4 * g.groups.count() * w_.stride[1] * w_.stride[2];
    const int64_t line = bytes * InterleavedLines::pitch(w_);
    lines_ = std::clamp<int64_t>(kBytes / line, 1, std::min(height, kMostLines));
    lines_ = std::min(lines_, std::max<int64_t>(1, ceil_div(height * images, threads)));
    count_ = ceil_div(height, lines_);
    lines_ = ceil_div(height, count_);
    parts_ = std::clamp<int64_t>(threads / (images * count_), 1, g.panels.count());
  }

  int64_t lines() const { return lines_; }
  int64_t count() const { return count_; }
  int64_t parts() const { return parts_; }  // of the panels
  int64_t first(int64_t number) const { return w_.output[1] * number / count_; }

  // Calls body(part) for the parts of strip `number`.
  template <typename Body>
  void for_each_part(int64_t number, const Body& body) const {
    const int64_t first = this->first(number), lines = this->first(number + 1) - first;
    const int64_t width = w_.output[2], across = ceil_div(width, kPositions);
    const int64_t step = across > 1 ? 1 : std::max<int64_t>(1, kPositions / width);
    for (int64_t line = 0; line < lines; line += step) {
      for (int64_t a = 0; a < across; ++a) {
        const int64_t begin = width * a / across, end = width * (a + 1) / across;
        body(Part{line, std::min(step, lines - line), begin, end - begin});
      }
    }
  }

 private:
  const Window& w_;
  int64_t lines_ = 1, count_ = 1, parts_ = 1;
};

struct Space {
  ScratchArray<uint8_t> strip;
  ScratchArray<int32_t> tile, starts;
};

}  // namespace

bool gains_by_positions(const IntegerKernels& kernels, const ConvShape& s) {
  const Window& w = s.window;
  if (kernels.positions == nullptr || w.pad_begin[0] != 0) return false;
  if (w.input[0] * w.kernel[0] * w.output[0] != 1) return false;
  const ChannelGroups groups = channel_groups(kernels, s.channels / s.groups, count_of(w.kernel));
  if (groups.size != kernels.group()) return false;
  // Dot products' worth of time: to transpose a sum, and to move one out of padded lines.
  constexpr double kTransposed = 32, kMoved = 16;
  const int64_t lanes = kernels.columns / 2, filters = s.filters / s.groups;
  const int64_t pitch = InterleavedLines::pitch(w), out = w.output[1] * w.output[2];
  const auto depth = static_cast<double>(groups.depth());
  const auto padded = static_cast<double>(ceil_div(w.output[1] * pitch, lanes) * lanes);
  const auto filled = static_cast<double>(ceil_div(filters, lanes) * lanes);
  const double as_lanes =
      depth * padded / static_cast<double>(out) + (pitch == w.output[2] ? 0 : kMoved);
  const double as_rows = depth * filled / static_cast<double>(filters) + kTransposed;
  return as_rows < as_lanes;
}

void PositionConvolution::run(SumsTarget& target, ThreadPool& pool) const {
  const Window& w = shape.window;
  const Strips strips(*this, pool.size());
  const InterleavedLines lines(kernels, w, groups, strips.lines());
  const int64_t width = w.output[2], columns = kernels.columns;
  const bool one_line = lines.pitch() == width;
  const int64_t filters = shape.filters / shape.groups;
  std::vector<Space> spaces(static_cast<size_t>(pool.size()));
  const auto prepare = [&](Space& space) {
    space.strip = scratch<uint8_t>(lines.bytes());
    space.tile = scratch<int32_t>((kPositions + kTileSlack) * columns);
    space.starts = scratch<int32_t>(columns);
  };
  const int64_t tasks = shape.batch * shape.groups * strips.count() * strips.parts();
  pool.parallel_for(tasks, [&](int64_t task, int worker) {
    Space& space = spaces[static_cast<size_t>(worker)];
    if (!space.strip) prepare(space);
    const int64_t part = task % strips.parts(), strip = task / strips.parts() % strips.count();
    const int64_t plane = task / strips.parts() / strips.count(), group = plane % shape.groups;
    const int64_t top = strips.first(strip);
    lines.fill(image + plane * groups.channels * count_of(w.input), top,
               strips.first(strip + 1) - top, static_cast<uint8_t>(zero),
               static_cast<uint8_t>(flip), space.strip.get(), nullptr, nullptr);
    const int64_t last = panels.count() * (part + 1) / strips.parts();
    for (int64_t panel = panels.count() * part / strips.parts(); panel < last; ++panel) {
      const int32_t* sums = panels.sums(group, panel);
      for (int64_t i = 0; i < columns; ++i) {
        space.starts[i] = static_cast<int32_t>(-static_cast<uint32_t>(zero + flip) *
                                               static_cast<uint32_t>(sums[i]));
      }
      strips.for_each_part(strip, [&](const Part& at) {
        const SumsTarget::Block block{plane / shape.groups, group * filters + panels.first(panel),
                                      (top + at.line) * width + at.column, panels.filters(panel),
                                      at.lines * at.columns};
        const SumsTarget::Place place = target.place(worker, block);
        IntegerPositionsArgs g;
        g.lines = one_line ? 1 : at.lines;
        g.columns = one_line ? at.lines * at.columns : at.columns;
        g.line_step = lines.pitch();
        g.groups = static_cast<int64_t>(lines.offsets().size());
        g.offsets = lines.offsets().data();
        g.image = space.strip.get() + 4 * (at.line * lines.pitch() + at.column);
        g.panel = panels.panel(group, panel);
        g.starts = space.starts.get();
        g.filters = block.filters;
        g.tile = space.tile.get();
        g.out = static_cast<int32_t*>(place.data);
        g.out_stride = place.stride;
        kernels.positions(g);
        target.done(worker, block, place);
      });
    }
  });
}

}  // namespace redfuser::cpu
