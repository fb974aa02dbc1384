#include "ops/arguments.h"

#include <algorithm>

#include "base/error.h"
#include "base/type_codes.h"
#include "ops/lowering.h"

namespace redfuser::ops {
namespace {

// The longest list of sizes, axes or parts.
constexpr int64_t kMaxList = 4096;

// The elements of a vector or scalar input, each from `element`.
template <typename Element>
std::vector<ir::Expr> list_of(const NodeView& view, int input, const Element& element) {
  const auto& shape = view.shape(input);
  const auto count = constant_count(shape);
  if (!count && shape.size() == 1) {
    view.fail_unknown(fmt::format("the length of input {} must be known", input));
  }
  if (!count || shape.size() > 1) {
    view.fail(fmt::format("input {} has shape {}; a list of known length is needed", input,
                          shape_text(view.pool(), shape)));
  }
  if (*count > kMaxList) {
    view.fail(
        fmt::format("input {} lists {} sizes; at most {} are taken", input, *count, kMaxList));
  }
  std::vector<ir::Expr> result;
  for (int64_t i = 0; i < *count; ++i) {
    std::vector<ir::Expr> index(shape.size(), view.pool().integer(i));
    result.push_back(view.pool().cast(DType::Int64, element(std::move(index), i)));
  }
  return result;
}

ir::Expr known_or_read(const NodeView& view, int input, std::vector<ir::Expr> index, int64_t i) {
  if (const auto* elements = view.elements(input)) return (*elements)[i];
  return view.pool().read(view.node().inputs[input], view.dtype(input), std::move(index));
}

std::vector<ir::Expr> integers_of(const NodeView& view, const std::string& attribute) {
  std::vector<ir::Expr> result;
  for (int64_t value : view.integers(attribute, {})) result.push_back(view.pool().integer(value));
  return result;
}

std::vector<ir::Expr> origin(const NodeView& view, int input) {
  const auto count = constant_count(view.shape(input));
  if (count != 1) {
    const auto message = fmt::format("input {} has shape {}; one element is needed", input,
                                     shape_text(view.pool(), view.shape(input)));
    count ? view.fail(message) : view.fail_unknown(message);
  }
  return std::vector<ir::Expr>(view.shape(input).size(), view.pool().integer(0));
}

}  // namespace

std::optional<std::vector<int64_t>> constant_argument(const NodeView& view,
                                                      const std::string& attribute, int input) {
  if (view.has(attribute)) return view.integers(attribute, {});
  if (!view.has_input(input)) return std::nullopt;
  auto values = view.constant_integers(input);
  if (!values) view.fail_unknown(fmt::format("{} (input {}) must be constant", attribute, input));
  return values;
}

std::optional<std::vector<int>> axes_argument(const NodeView& view, const std::string& attribute,
                                              int input, int rank) {
  auto values = constant_argument(view, attribute, input);
  if (!values) return std::nullopt;
  if (!view.has(attribute) && view.rank(input) > 1) view.fail("the axes must be a vector");
  std::vector<int> axes;
  for (int64_t value : *values) {
    axes.push_back(view.axis(value, rank));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) {
      view.fail(fmt::format("axis {} is named twice", value));
    }
  }
  return axes;
}

std::optional<std::vector<ir::Expr>> size_argument(const NodeView& view,
                                                   const std::string& attribute, int input) {
  if (view.has(attribute)) return integers_of(view, attribute);
  if (!view.has_input(input)) return std::nullopt;
  return list_of(view, input, [&](std::vector<ir::Expr> index, int64_t i) {
    return known_or_read(view, input, std::move(index), i);
  });
}

std::optional<std::vector<ir::Expr>> size_argument(const LowerContext& context,
                                                   const std::string& attribute, int input) {
  if (context.has(attribute)) return integers_of(context, attribute);
  if (!context.has_input(input)) return std::nullopt;
  return list_of(context, input, [&](std::vector<ir::Expr> index, int64_t) {
    return context.read(input, std::move(index));
  });
}

void check_indices(const NodeView& view, int input, std::span<const ir::Expr> sizes) {
  if (!is_integer(view.dtype(input))) view.fail("the indices must be integers");
  auto constant = [](ir::Expr size) { return size->is_constant(); };
  if (!std::all_of(sizes.begin(), sizes.end(), constant)) return;
  for (ir::Expr size : sizes) {
    if (size->is_constant(0) && constant_count(view.shape(input)).value_or(0) > 0) {
      view.fail("an index is out of range for size 0");
    }
  }
  const auto positions = view.constant_integers(input);
  if (!positions) return;
  for (size_t i = 0; i < positions->size(); ++i) {
    const int64_t position = (*positions)[i], size = sizes[i % sizes.size()]->integer;
    if (position < -size || position >= size) {
      view.fail(fmt::format("index {} is out of range for size {}", position, size));
    }
  }
}

Positions index_positions(const LowerContext& context, int input, ir::Expr size) {
  ir::ExprPool& pool = context.pool();
  std::vector<ir::Expr> axes = output_axes(context.graph(), context.node().inputs[input]);
  ir::Expr position = context.read(input, axes);
  return {"index",
          std::move(axes),
          position,
          size,
          pool.sub(pool.integer(0), size),
          pool.sub(size, pool.integer(1))};
}

std::vector<Positions> tuple_positions(const LowerContext& context, int input,
                                       std::span<const ir::Expr> sizes) {
  std::vector<Positions> result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Positions positions = index_positions(context, input, sizes[i]);
    std::vector<ir::Expr> tuple = positions.axes;
    tuple.back() = context.pool().integer(static_cast<int64_t>(i));
    positions.axes.pop_back();
    positions.position = context.read(input, std::move(tuple));
    result.push_back(std::move(positions));
  }
  return result;
}

std::optional<ir::Expr> scalar_argument(const LowerContext& context, const std::string& attribute,
                                        int input, DType dtype) {
  ir::ExprPool& pool = context.pool();
  if (context.has(attribute)) return pool.number(context.real(attribute, 0), dtype);
  if (!context.has_input(input)) return std::nullopt;
  return pool.cast(dtype, only_element(context, input));
}

DType type_argument(const NodeView& view, const std::string& attribute, DType fallback) {
  if (!view.has(attribute)) return fallback;
  const int64_t code = view.integer(attribute, 0);
  const DType dtype = dtype_of(code);
  if (dtype == DType::Undefined) {
    view.fail(fmt::format("attribute \"{}\": element type {} is not supported", attribute,
                          type_name(code)));
  }
  return dtype;
}

ir::Expr only_element(const NodeView& view, int input) {
  return known_or_read(view, input, origin(view, input), 0);
}

ir::Expr only_element(const LowerContext& context, int input) {
  return context.read(input, origin(context, input));
}

}  // namespace redfuser::ops
