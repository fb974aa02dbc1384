#include "codegen/opaque/line_windows.h"

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/product/library_time.h"
#include "ir/polynomial.h"

namespace redfuser::codegen {

ir::Expr reduced_by_lines(StepBuilder& builder, const ops::NodeView& view, const Windows& windows,
                          const WindowReduction& of) {
  using Index = std::vector<ir::Expr>;
  ir::ExprPool& pool = builder.pool();
  const DType dtype = of.outside->dtype;
  const ir::ValueId value = view.node().outputs[view.has_output(0) ? 0 : 1];
  std::function<ir::Expr(const Index&)> element = [&](const Index& at) {
    return pool.cast(dtype, pool.read(view.node().inputs[0], view.dtype(0), at));
  };
  for (size_t i = of.taps.size(); i-- > 0;) {
    Index axes = of.output;
    for (size_t j = 0; j < i; ++j) axes[j + 2] = pool.axis("i", view.shape(0)[j + 2]);
    const TapPlace place = place_along(view, windows, i, of.output[i + 2], of.taps[i]);
    Index at = axes;
    at[i + 2] = place.at[0];
    ir::Expr x = element(at);
    if (place.inside) x = pool.select(place.inside, x, of.outside);
    ir::Expr line = pool.reduce(of.reduction, of.taps[i], x);
    if (i == 0) return line;
    const Index memory = builder.memory_axes(value, axes), sizes = extents_of(pool, memory);
    const int64_t scratch = builder.add_scratch(dtype, product_of(pool, sizes));
    add_map(builder, "window_lines", memory,
            {{scratch, builder.flat.flat(line), row_major(pool, memory, sizes)}},
            "lines of windows\n");
    element = [&builder, &pool, scratch, sizes, dtype, value](const Index& index) {
      ir::Expr offset = row_major(pool, builder.memory_axes(value, index), sizes);
      ir::Expr read = pool.read(scratch, dtype, {offset});
      builder.flat.keep(read);
      return read;
    };
  }
  return nullptr;
}

bool lines_pay(const StepBuilder& builder, const ops::NodeView& view, const Windows& windows,
               const std::function<void(StepBuilder&, bool)>& add) {
  constexpr int64_t kNominal = 64;
  // Accesses for each result: windows that are far apart share few lines.
  int64_t terms = 1, lines = 0, apart = 1;
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    terms *= windows.kernel[i];
    lines += (windows.kernel[i] + 1) * apart;
    apart *= windows.stride[i];
  }
  if (terms < 2 * lines) return false;
  const auto time = [&](bool by_lines) {
    StepBuilder trial = builder.trial();
    for (ir::Expr size : view.shape(0)) {
      if (builder.sizes.of(size) < 0) trial.sizes = KnownSizes::all(kNominal);
    }
    add(trial, by_lines);
    double sum = 0;
    for (const GpuCall& call : trial.result.calls) sum += time_of(call, trial.sizes, trial.target);
    return sum;
  };
  return time(true) < time(false);
}

}  // namespace redfuser::codegen
