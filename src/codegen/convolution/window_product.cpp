#include "codegen/convolution/window_product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "codegen/convolution/channels_last.h"
#include "codegen/core/tma_tile.h"
#include "codegen/product/product_kernel.h"
#include "codegen/product/product_text.h"

namespace redfuser::codegen {
namespace {

constexpr size_t kAxes = 3;

// What the driver and the instruction take of an image's axes (CUDA driver API,
// cuTensorMapEncodeIm2col; PTX, im2col mode).
std::string refusal_of(const ConvolutionForm& form, const Windows& windows) {
  constexpr int64_t kMostStride = 8;
  const int64_t reach = form.spatial == 2 ? 100 : 7;  // of windows beyond the image, and within
  const auto near = [&](ir::Expr pad) { return pad->is_constant() && pad->integer <= reach; };
  bool fits = std::all_of(windows.pad_end.begin(), windows.pad_end.end(), near);
  for (size_t axis = 0; axis < kAxes; ++axis) {
    if (form.stride[axis] > kMostStride) return "the stride is above that of TMA";
    const int64_t span = (form.kernel[axis] - 1) * form.dilation[axis];
    fits = fits && near(form.pad[axis]) && span <= reach;
  }
  if (!fits) return "its windows are too wide for TMA";
  return "";
}

int64_t taps_of(const ConvolutionForm& form) {
  return form.kernel[0] * form.kernel[1] * form.kernel[2];
}
int64_t chunks_of(const ConvolutionForm& form) {
  return (form.channels->integer + TmaTile::kSlabColumns - 1) / TmaTile::kSlabColumns;
}

// Its sizes. As rows: the windows; adjacent columns are adjacent elements of the result.
ProductCall call_of(ir::ExprPool& pool, const ConvolutionForm& form, bool as_rows) {
  ProductCall call;
  call.dtype = form.dtype;
  call.k = pool.integer(taps_of(form) * chunks_of(form) * TmaTile::kSlabColumns);
  call.batch = as_rows ? pool.integer(1) : form.batch;
  call.m = as_rows ? form.positions(pool) : form.filters;
  call.n =
      as_rows ? form.filters : product_of(pool, {form.out_planes, form.out_height, form.out_width});
  return call;
}

bool windows_as_rows(const ConvolutionStep& convolution) {
  return channels_last(convolution.builder.target, convolution.value);
}

OperandReuse reuse_of(const ConvolutionForm& form, bool as_rows) {
  double overlap = static_cast<double>(taps_of(form));
  for (const int64_t stride : form.stride) overlap /= static_cast<double>(stride);
  overlap = std::max(overlap, 1.0);
  return as_rows ? OperandReuse{overlap, 1} : OperandReuse{1, overlap};
}

fuse::ProductStep product_of(const ConvolutionStep& convolution) {
  fuse::ProductStep product;
  product.value = static_cast<ir::ValueId>(convolution.value);
  product.axes = convolution.output;
  if (windows_as_rows(convolution)) {
    product.m = convolution.positions();
    product.n = {convolution.output[1]};
  } else {
    product.batch = {convolution.output[0]};
    product.m = {convolution.output[1]};
    product.n = tail(convolution.output);
  }
  return product;
}

ProductEpilogue epilogue_of(const ConvolutionStep& convolution) {
  StepBuilder& builder = convolution.builder;
  return {builder.flat.flat(convolution.element(convolution.sum())),
          {convolution.sum()},
          convolution.value,
          builder.offset_of(convolution.value, convolution.output)};
}

class WindowProduct {
 public:
  WindowProduct(const ConvolutionStep& convolution, const ConvolutionForm& form)
      : step_(convolution),
        form_(form),
        builder_(convolution.builder),
        pool_(convolution.pool()),
        as_rows_(windows_as_rows(convolution)),
        input_(form.copies_input ? copy_input(convolution, form.pitch) : convolution.input()),
        filters_(form.copies_filters ? copy_filters(convolution, form.channels, form.merged)
                                     : convolution.weights()) {}

  void add() {
    const fuse::ProductStep product = product_of(step_);
    const ProductEpilogue epilogue = epilogue_of(step_);
    constexpr int kRows = ProductText::kTileRows, kColumns = ProductText::kTileColumns;
    const int lines = as_rows_ ? kColumns : kRows;
    const int loaded = static_cast<int>(std::min<int64_t>(lines, form_.filters->integer));
    const ProductWindows windows{
        kWindowProductFamily, reuse_of(form_, as_rows_), as_rows_ ? images(kRows) : filters(loaded),
        as_rows_ ? filters(loaded) : images(kColumns),
        [&](KernelText& kernel) { return operands(kernel, lines - loaded); }};
    builder_.result.calls.push_back(window_product_kernel(
        builder_, product, call_of(pool_, form_, as_rows_), windows, epilogue,
        fmt::format("convolution of %{} and %{}\n", step_.input(), step_.weights())));
  }

 private:
  // Along the spatial dimensions of TMA's images, innermost first.
  template <typename T, typename Visit>
  void each_axis(const T (&of)[kAxes], const Visit& visit) const {
    for (int i = 0; i < form_.spatial; ++i) visit(of[kAxes - 1 - static_cast<size_t>(i)]);
  }

  // Copies have so many windows, or filters.
  TmaView images(int count) const {
    const ir::Expr in[kAxes] = {form_.planes, form_.height, form_.width};
    const ir::Expr out[kAxes] = {form_.out_planes, form_.out_height, form_.out_width};
    TmaView view;
    view.buffer = builder_.buffer(input_);
    view.dtype = form_.dtype;
    view.offset = pool_.integer(0);
    view.dims = {form_.channels};
    ir::Expr stride = form_.channels;
    each_axis(in, [&](ir::Expr size) {
      view.dims.push_back(size);
      view.strides.push_back(stride);
      stride = pool_.mul(stride, size);
    });
    view.dims.push_back(form_.batch);
    view.strides.push_back(stride);
    view.box = {TmaTile::kSlabColumns, count};
    for (size_t axis = kAxes; axis-- > kAxes - static_cast<size_t>(form_.spatial);) {
      // The last window's first element is at (out − 1) · stride − pad = in − 1 + upper.
      ir::Expr last = pool_.sub(
          pool_.mul(pool_.sub(out[axis], pool_.integer(1)), pool_.integer(form_.stride[axis])),
          form_.pad[axis]);
      view.lower.push_back(pool_.sub(pool_.integer(0), form_.pad[axis]));
      view.upper.push_back(pool_.sub(last, pool_.sub(in[axis], pool_.integer(1))));
      view.steps.push_back(static_cast<int>(form_.stride[axis]));
    }
    return view;
  }

  TmaView filters(int count) const {
    TmaView view;
    view.buffer = builder_.buffer(filters_);
    view.dtype = form_.dtype;
    view.offset = pool_.integer(0);
    view.dims = {form_.channels, form_.filters, pool_.integer(taps_of(form_))};
    view.strides = {pool_.mul(form_.channels, pool_.integer(taps_of(form_))), form_.channels};
    view.box = {TmaTile::kSlabColumns, count, 1};
    return view;
  }

  std::string operands(KernelText& kernel, int missing) const {
    std::vector<std::string> lists;
    const auto add = [&](const std::vector<std::string>& numbers) {
      lists.push_back(fmt::format("{{{}}}", fmt::join(numbers, ", ")));
    };
    std::vector<std::string> sizes;
    for (const ir::Expr size : {form_.out_planes, form_.out_height, form_.out_width}) {
      sizes.push_back(as_int(kernel.size(size)));
    }
    add(sizes);
    for (const auto* each : {&form_.kernel, &form_.stride, &form_.dilation}) {
      add({std::to_string((*each)[0]), std::to_string((*each)[1]), std::to_string((*each)[2])});
    }
    std::vector<std::string> pads;
    for (const ir::Expr pad : form_.pad) pads.push_back(std::to_string(pad->integer));
    add(pads);
    return fmt::format("WindowOperands<{}, {}, {}>{{{}, {}}}", form_.spatial, as_rows_, missing,
                       fmt::join(lists, ", "), chunks_of(form_));
  }

  const ConvolutionStep& step_;
  const ConvolutionForm& form_;
  StepBuilder& builder_;
  ir::ExprPool& pool_;
  const bool as_rows_;  // the windows are rows
  const int64_t input_, filters_;
};

}  // namespace

std::variant<ConvolutionForm, std::string> window_product_form(const ConvolutionStep& convolution) {
  const Target& target = convolution.builder.target;
  if (target.architecture != 90 || target.portable) return "it takes the TMA of sm_90";
  auto found = convolution_form(convolution);
  const auto* form = std::get_if<ConvolutionForm>(&found);
  if (form == nullptr) return found;
  if (size_of(form->dtype) != 2) return "it takes floats of 16 bits";
  if (form->groups > 1 || form->merged > 1) return "it takes one group";
  if (!form->channels->is_constant() || !form->filters->is_constant()) {
    return "the numbers of channels and filters are not known";
  }
  if (std::string refusal = refusal_of(*form, convolution.windows); !refusal.empty()) {
    return refusal;
  }
  return found;
}

double window_product_time(const ConvolutionStep& convolution, const ConvolutionForm& form,
                           const KnownSizes& sizes) {
  StepBuilder builder = convolution.builder.trial();
  builder.sizes = sizes;
  const ProductCall call = call_of(builder.pool(), form, windows_as_rows(convolution));
  const EpilogueWork work = epilogue_work(epilogue_of(convolution), product_of(convolution));
  return product_kernel_time(builder, call, 1, work, reuse_of(form, windows_as_rows(convolution)));
}

void add_window_product(const ConvolutionStep& convolution, const ConvolutionForm& form) {
  WindowProduct(convolution, form).add();
}

}  // namespace redfuser::codegen
