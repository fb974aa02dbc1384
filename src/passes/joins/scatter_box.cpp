#include "passes/joins/scatter_box.h"

#include <algorithm>

#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::passes {
namespace {

// Positions first + index[dim], or `first` alone where dim is kNone.
struct Line {
  int64_t first = 0, dim = ScatterBox::kNone;
};

using Component = std::optional<int64_t>;  // of tuples in the last dimension

class BoxFinder {
 public:
  BoxFinder(const ir::Graph& graph, const ir::Node& node)
      : graph_(graph),
        view_(graph, node),
        indices_(node.inputs[1]),
        data_(shape_of(node.inputs[0])),
        positions_(shape_of(indices_)),
        updates_(shape_of(node.inputs[2])) {}

  std::optional<ScatterBox> find(bool tuples) {
    if (!has_known_sizes(positions_) || !(tuples ? of_tuples() : of_elements())) return {};
    const auto is_whole = [](const auto& range) { return range.whole; };
    const auto& ranges = box_.ranges;
    if (std::all_of(ranges.begin(), ranges.end(), is_whole)) return {};
    return box_;
  }

 private:
  const std::vector<ir::Expr>& shape_of(ir::ValueId value) const {
    return graph_.values[static_cast<size_t>(value)].shape;
  }
  static bool has_known_sizes(const std::vector<ir::Expr>& shape) {
    return std::all_of(shape.begin(), shape.end(),
                       [](ir::Expr size) { return size->is_constant() && size->integer > 0; });
  }

  // Each tuple has the positions in the first dimensions of the data.
  bool of_tuples() {
    const size_t length = static_cast<size_t>(positions_.back()->integer);
    const size_t outer = positions_.size() - 1;
    std::vector<bool> used(outer);
    for (size_t d = 0; d < length; ++d) {
      const std::optional<Line> line = line_of(static_cast<int64_t>(d));
      if (!line) return false;
      int64_t size = 1;
      if (line->dim != ScatterBox::kNone) {
        const auto dim = static_cast<size_t>(line->dim);
        if (used[dim]) return false;
        used[dim] = true;
        size = positions_[dim]->integer;
      }
      if (!add_range(d, line->first, size, line->dim)) return false;
    }
    for (size_t dim = 0; dim < outer; ++dim) {
      if (!used[dim] && !positions_[dim]->is_constant(1)) return false;
    }
    for (size_t d = length; d < data_.size(); ++d) {
      box_.ranges.push_back({true, 0, 0});
      box_.axes.push_back(static_cast<int64_t>(outer + d - length));
    }
    return true;
  }

  // The positions are those along one axis; in other dimensions the updates begin at 0.
  bool of_elements() {
    const auto axis =
        static_cast<size_t>(view_.axis(view_.integer("axis", 0), static_cast<int>(data_.size())));
    const std::optional<Line> line = line_of(std::nullopt);
    if (!line) return false;
    const bool along = line->dim == static_cast<int64_t>(axis);
    if (!along && (line->dim != ScatterBox::kNone || !updates_[axis]->is_constant(1))) return false;
    for (size_t d = 0; d < data_.size(); ++d) {
      const int64_t size = positions_[d]->integer;
      if (!add_range(d, d == axis ? line->first : 0, size, static_cast<int64_t>(d))) return false;
    }
    return true;
  }

  bool add_range(size_t d, int64_t start, int64_t size, int64_t axis) {
    if (!data_[d]->is_constant()) return false;
    const int64_t whole = data_[d]->integer;
    if (start < 0) start += whole;
    if (start < 0 || start + size > whole) return false;
    box_.ranges.push_back({size == whole, start, size});
    box_.axes.push_back(axis);
    return true;
  }

  std::optional<Line> line_of(Component component) const {
    const ir::Value& value = graph_.values[static_cast<size_t>(indices_)];
    if (!value.constant.defined()) {
      return value.indexed || value.has_elements ? line_of_expression(component) : std::nullopt;
    }
    if (value.dtype == DType::Int64) return line_of_tensor<int64_t>(value.constant, component);
    if (value.dtype == DType::Int32) return line_of_tensor<int32_t>(value.constant, component);
    return std::nullopt;
  }

  std::optional<Line> line_of_expression(Component component) const {
    ir::ExprPool& pool = *graph_.pool;
    const std::vector<ir::Expr> axes = ops::output_axes(graph_, indices_);
    std::vector<ir::Expr> index = axes;
    if (component) index.back() = pool.integer(*component);
    for (size_t d = 0; d < index.size(); ++d) {
      if (positions_[d]->is_constant(1)) index[d] = pool.integer(0);
    }
    ops::Lowering lowering(graph_, [this](ir::ValueId inlined) {
      return graph_.values[static_cast<size_t>(inlined)].indexed;
    });
    const ir::Expr element = lowering.element(indices_, index);
    if (element->is_constant()) return Line{element->integer, ScatterBox::kNone};
    for (size_t d = 0; d < index.size(); ++d) {
      const ir::Expr first = pool.sub(element, axes[d]);
      if (first->is_constant()) return Line{first->integer, static_cast<int64_t>(d)};
    }
    return std::nullopt;
  }

  template <typename T>
  std::optional<Line> line_of_tensor(const Tensor& tensor, Component component) const {
    const int64_t step = component ? positions_.back()->integer : 1;
    const int64_t count = tensor.size() / step;
    const T* numbers = tensor.as<T>() + component.value_or(0);
    Line line{numbers[0], ScatterBox::kNone};
    int64_t inner = count, stride = 1, size = 1;
    for (size_t d = 0; d < positions_.size() - (component ? 1 : 0); ++d) {
      const int64_t here = positions_[d]->integer;
      inner /= here;
      if (here == 1 || numbers[inner * step] == numbers[0]) continue;
      if (line.dim != ScatterBox::kNone) return std::nullopt;
      line.dim = static_cast<int64_t>(d);
      stride = inner, size = here;
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = line.dim == ScatterBox::kNone ? 0 : i / stride % size;
      if (numbers[i * step] != line.first + index) return std::nullopt;
    }
    return line;
  }

  const ir::Graph& graph_;
  const ops::NodeView view_;
  const ir::ValueId indices_;
  const std::vector<ir::Expr>&data_, &positions_, &updates_;
  ScatterBox box_;
};

}  // namespace

std::optional<ScatterBox> find_scatter_box(const ir::Graph& graph, const ir::Node& node) {
  const bool tuples = node.op == "ScatterND";
  const bool elements = node.op == "ScatterElements" || node.op == "Scatter";
  if (!node.domain.empty() || (!tuples && !elements)) return std::nullopt;
  if (ops::NodeView(graph, node).text("reduction", "none") != "none") return std::nullopt;
  return BoxFinder(graph, node).find(tuples);
}

}  // namespace redfuser::passes
