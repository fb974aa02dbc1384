#include "codegen/convolution/convolution_form.h"

#include <algorithm>
#include <optional>

namespace redfuser::codegen {
namespace {

constexpr size_t kAxes = 3;

int64_t round_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

bool whole(ir::ExprPool& pool, ir::Expr size, int64_t unit) {
  return pool.floormod(size, pool.integer(unit))->is_constant(0);
}

// Elements of a copy of 16 bytes.
int64_t piece_of(DType dtype) { return 16 / static_cast<int64_t>(size_of(dtype)); }

// How many groups of so many channels and filters become one, so that its channels are whole pieces
// and its filters whole groups of stores, with the fewest products in tiles of the smallest width;
// all groups where none are. Of equal numbers the larger has the longer sums, but one needs no copy
// of the filters, which counts where they fill half a tile.
int64_t merged_groups(int64_t groups, int64_t channels, int64_t filters, int64_t piece) {
  constexpr int64_t kTogether = 8, kTile = 32;
  int64_t best = groups, least = 0;
  for (int64_t count = 1; count <= groups; ++count) {
    if (groups % count != 0) continue;
    if (channels * count % piece != 0 || filters * count % kTogether != 0) continue;
    if (count == 1 && 2 * filters >= kTile) return 1;
    const int64_t products = round_up(filters * count, kTile) * channels;
    if (least != 0 && products > least) continue;
    best = count;
    least = products;
  }
  return best;
}

// Sets channels and filters of a group, or returns why there are none.
std::optional<std::string> add_groups(ConvolutionForm& form, const ConvolutionStep& c) {
  ir::ExprPool& pool = c.pool();
  const int64_t piece = piece_of(form.dtype);
  form.channels = c.channels();
  form.filters = pool.floordiv(c.weights_shape()[0], pool.integer(form.groups));
  if (form.groups > 1) {
    if (!form.channels->is_constant() || !form.filters->is_constant()) {
      return "the sizes of a group are not known";
    }
    form.merged = merged_groups(form.groups, form.channels->integer, form.filters->integer, piece);
    form.groups /= form.merged;
    form.channels = pool.integer(form.channels->integer * form.merged);
    form.filters = pool.integer(form.filters->integer * form.merged);
  }
  const bool padded = !whole(pool, form.channels, piece);
  form.copies_input = padded || !channels_last(c.builder.target, c.input());
  form.copies_filters = padded || form.merged > 1 || !channels_last(c.builder.target, c.weights());
  if (padded) form.channels = pool.mul(ceil_div(pool, form.channels, piece), pool.integer(piece));
  form.pitch = pool.mul(form.channels, pool.integer(form.groups));
  return std::nullopt;
}

}  // namespace

std::variant<ConvolutionForm, std::string> window_form(const ConvolutionStep& convolution) {
  const ConvolutionStep& c = convolution;
  ir::ExprPool& pool = c.pool();
  ConvolutionForm form;
  form.dtype = c.dtype();
  const bool half = is_float(form.dtype) && size_of(form.dtype) == 2;
  if (!half && form.dtype != DType::Float32) return "it takes floats of 16 and 32 bits";
  if (c.weights_dtype() != form.dtype) return "the filters have another type";
  const size_t rank = c.windows.kernel.size();
  if (rank < 1 || rank > kAxes) return "it takes one to three spatial dimensions";
  form.spatial = rank == kAxes ? 3 : 2;
  form.groups = c.groups();
  form.batch = c.view.shape(0)[0];
  ir::Expr in[kAxes], out[kAxes];
  for (size_t axis = 0; axis < kAxes; ++axis) {
    in[axis] = out[axis] = pool.integer(1);
    form.pad[axis] = pool.integer(0);
    if (axis + rank < kAxes) continue;
    const size_t i = axis + rank - kAxes;
    in[axis] = c.view.shape(0)[i + 2];
    out[axis] = c.output[i + 2]->extent();
    form.kernel[axis] = c.windows.kernel[i];
    form.stride[axis] = c.windows.stride[i];
    form.dilation[axis] = c.windows.dilation[i];
    form.pad[axis] = c.windows.pad_begin[i];
  }
  form.planes = in[0], form.height = in[1], form.width = in[2];
  form.out_planes = out[0], form.out_height = out[1], form.out_width = out[2];
  return form;
}

std::variant<ConvolutionForm, std::string> convolution_form(const ConvolutionStep& convolution) {
  auto found = window_form(convolution);
  if (std::holds_alternative<std::string>(found)) return found;
  auto& form = std::get<ConvolutionForm>(found);
  const Target& target = convolution.builder.target;
  if (form.dtype == DType::Float32) {
    if (target.exact_products) return "products of floats are to be exact";
    form.parts = target.tf32 ? 1 : 2;
  }
  if (const auto refusal = add_groups(form, convolution)) return *refusal;
  return found;
}

}  // namespace redfuser::codegen
