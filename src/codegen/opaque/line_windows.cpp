#include "codegen/opaque/line_windows.h"

#include <algorithm>
#include <iterator>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/product/library_time.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

using Index = std::vector<ir::Expr>;
using Element = std::function<ir::Expr(const Index&)>;

// Elements for each result along a dimension, in parts of `part`.
int64_t elements_of(int64_t taps, int64_t part) { return part + taps / part + taps % part; }

// The part of the fewest elements.
int64_t part_of(int64_t taps) {
  constexpr int64_t kMost = 1024;
  int64_t best = taps;
  for (int64_t part = 2; part < std::min(taps, kMost); ++part) {
    if (elements_of(taps, part) < elements_of(taps, best)) best = part;
  }
  return best;
}

// A window of fewer taps than this is not divided.
constexpr int64_t kDivided = 8;

class Reducer {
 public:
  Reducer(StepBuilder& builder, const ops::NodeView& view, const Windows& windows,
          const WindowReduction& of)
      : builder_(builder),
        pool_(builder.pool()),
        view_(view),
        windows_(windows),
        of_(of),
        value_(view.node().outputs[view.has_output(0) ? 0 : 1]) {}

  ir::Expr run(WindowWay way) {
    Element element = [this](const Index& at) {
      return of_.term(pool_.read(view_.node().inputs[0], view_.dtype(0), at));
    };
    if (way == WindowWay::Whole) return whole(element);
    for (size_t i = of_.taps.size(); i-- > 0;) {
      if (i > 0 && windows_.kernel[i] == 1) {
        element = [this, i, element](const Index& at) {
          return at_tap(windows_, i, at, pool_.integer(0), element);
        };
        continue;
      }
      Index axes = of_.output;
      for (size_t j = 0; j < i; ++j) axes[j + 2] = pool_.axis("i", view_.shape(0)[j + 2]);
      const bool divided = way == WindowWay::Parts && windows_.kernel[i] >= kDivided &&
                           of_.taps[i]->extent()->is_constant(windows_.kernel[i]);
      ir::Expr line = divided
                          ? by_parts(i, axes, element)
                          : reduced(of_.taps[i], at_tap(windows_, i, axes, of_.taps[i], element));
      if (i == 0) return line;
      element = stored(axes, line);
    }
    return nullptr;
  }

 private:
  ir::Expr reduced(ir::Expr tap, ir::Expr term) { return pool_.reduce(of_.reduction, tap, term); }

  ir::Expr whole(const Element& element) {
    const TapPlace place = place_of(view_, windows_, tail(of_.output), of_.taps);
    Index at = {of_.output[0], of_.output[1]};
    at.insert(at.end(), place.at.begin(), place.at.end());
    ir::Expr x = element(at);
    if (place.inside) x = pool_.select(place.inside, x, of_.outside);
    for (size_t i = of_.taps.size(); i-- > 0;) x = reduced(of_.taps[i], x);
    return x;
  }

  // The element under a tap along dimension i of the windows at `axes`.
  ir::Expr at_tap(const Windows& windows, size_t i, const Index& axes, ir::Expr tap,
                  const Element& element) {
    const TapPlace place = place_along(view_, windows, i, axes[i + 2], tap);
    Index at = axes;
    at[i + 2] = place.at[0];
    ir::Expr x = element(at);
    return place.inside ? pool_.select(place.inside, x, of_.outside) : x;
  }

  // Parts start at every place that a window's part has.
  ir::Expr by_parts(size_t i, const Index& axes, const Element& element) {
    const int64_t taps = windows_.kernel[i], part = part_of(taps), rest = taps % part;
    const int64_t stride = windows_.stride[i], dilation = windows_.dilation[i];
    const auto number = [&](int64_t value) { return pool_.integer(value); };
    Windows every = windows_;
    every.stride[i] = 1;
    Index places = axes;
    ir::Expr last = pool_.mul(pool_.sub(axes[i + 2]->extent(), number(1)), number(stride));
    places[i + 2] = pool_.axis("h", pool_.add(last, number((taps - rest - part) * dilation + 1)));
    ir::Expr tap = pool_.axis("k", number(part)), group = pool_.axis("q", number(taps / part));
    const Element parts = stored(places, reduced(tap, at_tap(every, i, places, tap, element)));
    Index at = axes;
    at[i + 2] = pool_.add(pool_.mul(axes[i + 2], number(stride)),
                          pool_.mul(group, number(part * dilation)));
    ir::Expr result = reduced(group, parts(at));
    if (rest == 0) return result;
    ir::Expr left = pool_.axis("k", number(rest));
    ir::Expr after = pool_.add(left, number(taps - rest));
    const bool sum = of_.reduction == ir::Reduction::Sum;
    return pool_.make(sum ? ir::ExprOp::Add : ir::ExprOp::Max,
                      {result, reduced(left, at_tap(windows_, i, axes, after, element))});
  }

  // The values at every point of the axes, in scratch memory.
  Element stored(const Index& axes, ir::Expr value) {
    const Index memory = builder_.memory_axes(value_, axes), sizes = extents_of(pool_, memory);
    const DType dtype = of_.outside->dtype;
    const int64_t scratch = builder_.add_scratch(dtype, product_of(pool_, sizes));
    add_map(builder_, "window_lines", memory,
            {{scratch, builder_.flat.flat(value), row_major(pool_, memory, sizes)}},
            "parts of windows\n");
    return [this, scratch, sizes, dtype](const Index& index) {
      ir::Expr offset = row_major(pool_, builder_.memory_axes(value_, index), sizes);
      ir::Expr read = pool_.read(scratch, dtype, {offset});
      builder_.flat.keep(read);
      return read;
    };
  }

  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const ops::NodeView& view_;
  const Windows& windows_;
  const WindowReduction& of_;
  const ir::ValueId value_;
};

}  // namespace

ir::Expr reduced_by(WindowWay way, StepBuilder& builder, const ops::NodeView& view,
                    const Windows& windows, const WindowReduction& of) {
  return Reducer(builder, view, windows, of).run(way);
}

WindowWay window_way(const StepBuilder& builder, const ops::NodeView& view, const Windows& windows,
                     const std::function<void(StepBuilder&, WindowWay)>& add) {
  constexpr int64_t kNominal = 64;
  // Accesses for each result: windows that are far apart share few lines.
  int64_t terms = 1, lines = 0, apart = 1;
  bool divides = false;
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int64_t taps = windows.kernel[i];
    terms *= taps;
    lines += (taps + 1) * apart;
    apart *= windows.stride[i];
    divides |= taps >= kDivided && taps > windows.stride[i] * elements_of(taps, part_of(taps));
  }
  std::vector<WindowWay> ways = {WindowWay::Whole};
  if (terms >= 2 * lines) ways.push_back(WindowWay::Lines);
  if (divides) ways.push_back(WindowWay::Parts);
  if (ways.size() == 1) return ways[0];
  const auto time = [&](WindowWay way) {
    StepBuilder trial = builder.trial();
    for (ir::Expr size : view.shape(0)) {
      if (builder.sizes.of(size) < 0) trial.sizes = KnownSizes::all(kNominal);
    }
    add(trial, way);
    double sum = 0;
    for (const GpuCall& call : trial.result.calls) sum += time_of(call, trial.sizes, trial.target);
    return sum;
  };
  std::vector<double> times;
  std::transform(ways.begin(), ways.end(), std::back_inserter(times), time);
  return ways[static_cast<size_t>(std::min_element(times.begin(), times.end()) - times.begin())];
}

}  // namespace redfuser::codegen
