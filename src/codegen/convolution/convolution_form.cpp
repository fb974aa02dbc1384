#include "codegen/convolution/convolution_form.h"

#include <algorithm>

namespace redfuser::codegen {
namespace {

// Elements of a copy of 16 bytes.
constexpr int64_t kPiece = 8;

bool whole_pieces(ir::ExprPool& pool, ir::Expr size) {
  return pool.floormod(size, pool.integer(kPiece))->is_constant(0);
}

ir::Expr padded(ir::ExprPool& pool, ir::Expr size) {
  return pool.mul(ceil_div(pool, size, kPiece), pool.integer(kPiece));
}

}  // namespace

std::variant<ConvolutionForm, std::string> window_form(const ConvolutionStep& convolution) {
  const ConvolutionStep& c = convolution;
  ir::ExprPool& pool = c.pool();
  ConvolutionForm form;
  form.dtype = c.dtype();
  if (!is_float(form.dtype) || size_of(form.dtype) != 2 || c.view.dtype(1) != form.dtype) {
    return "it takes floats of 16 bits";
  }
  const size_t rank = c.windows.kernel.size();
  if (rank < 1 || rank > 2) return "it takes one or two spatial dimensions";
  form.groups = c.groups();
  const std::vector<ir::Expr>& shape = c.view.shape(0);
  ir::Expr one = pool.integer(1);
  form.batch = shape[0];
  form.height = rank == 2 ? shape[2] : one;
  form.width = shape.back();
  form.out_height = rank == 2 ? c.output[2]->extent() : one;
  form.out_width = c.output.back()->extent();
  form.pad[0] = rank == 2 ? c.windows.pad_begin[0] : pool.integer(0);
  form.pad[1] = c.windows.pad_begin.back();
  for (size_t i = 0; i < rank; ++i) {
    form.kernel[2 - rank + i] = c.windows.kernel[i];
    form.stride[2 - rank + i] = c.windows.stride[i];
    form.dilation[2 - rank + i] = c.windows.dilation[i];
  }
  return form;
}

std::variant<ConvolutionForm, std::string> convolution_form(const ConvolutionStep& convolution) {
  auto found = window_form(convolution);
  if (std::holds_alternative<std::string>(found)) return found;
  const ConvolutionStep& c = convolution;
  ir::ExprPool& pool = c.pool();
  auto& form = std::get<ConvolutionForm>(found);
  form.channels = c.channels();
  form.filters = pool.floordiv(c.view.shape(1)[0], pool.integer(form.groups));
  const bool whole = whole_pieces(pool, form.channels);
  if (form.groups > 1 && (!whole || !whole_pieces(pool, form.filters))) {
    return "channels or filters of a group are no multiples of 8";
  }
  form.copies_input = !whole || !channels_last(c.builder.target, c.input());
  form.copies_filters = !whole || !channels_last(c.builder.target, c.weights());
  if (!whole) form.channels = padded(pool, form.channels);
  form.pitch = pool.mul(form.channels, pool.integer(form.groups));
  return found;
}

}  // namespace redfuser::codegen
