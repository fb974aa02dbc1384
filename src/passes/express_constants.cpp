// Large constants that are functions of their indices become expressions: one number everywhere, or
// one of two numbers by the distance of two indices, lo <= j - i <= hi (a causal mask, a window).
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace redfuser {
namespace {

constexpr int64_t kLarge = 4096;  // elements; smaller ones cost nothing to load
constexpr int kOpset = 18;

// Two elements by their bytes, and where the first of them is.
struct Band {
  int64_t inside = 0, outside = -1;  // positions of such elements; outside -1: there is none
  size_t row = 0, column = 0;        // the dimensions
  int64_t lowest = 0, highest = 0;   // of column index - row index, where inside
};

class Contents {
 public:
  explicit Contents(const Tensor& tensor)
      : data_(static_cast<const char*>(tensor.data())),
        width_(size_of(tensor.dtype())),
        dims_(tensor.dims()),
        count_(tensor.size()) {}

  std::optional<Band> band() const {
    Band result;
    if (!two_numbers(result)) return std::nullopt;
    if (result.outside < 0) return result;
    std::vector<size_t> wide;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d] > 1 && !same_along(d)) wide.push_back(d);
    }
    // Index vectors of few elements are constants themselves.
    if (wide.size() != 2 || std::min(dims_[wide[0]], dims_[wide[1]]) <= kMaxElements) {
      return std::nullopt;
    }
    result.row = wide[0];
    result.column = wide[1];
    // Either number may be the one within the band.
    for (int side = 0; side < 2; ++side) {
      if (fits(result)) return result;
      std::swap(result.inside, result.outside);
    }
    return std::nullopt;
  }

 private:
  bool same(int64_t a, int64_t b) const {
    return std::memcmp(data_ + static_cast<size_t>(a) * width_,
                       data_ + static_cast<size_t>(b) * width_, width_) == 0;
  }

  bool two_numbers(Band& band) const {
    for (int64_t i = 1; i < count_; ++i) {
      if (same(i, band.inside)) continue;
      if (band.outside < 0) band.outside = i;
      if (!same(i, band.outside)) return false;
    }
    return true;
  }

  int64_t stride(size_t dim) const {
    int64_t size = 1;
    for (size_t d = dim + 1; d < dims_.size(); ++d) size *= dims_[d];
    return size;
  }

  bool same_along(size_t dim) const {
    const int64_t inner = stride(dim), line = inner * dims_[dim];
    const size_t bytes = static_cast<size_t>(inner) * width_;
    for (int64_t start = 0; start < count_; start += line) {
      const char* first = data_ + static_cast<size_t>(start) * width_;
      for (int64_t i = 1; i < dims_[dim]; ++i) {
        if (std::memcmp(first, first + static_cast<size_t>(i) * bytes, bytes) != 0) return false;
      }
    }
    return true;
  }

  // Sets the bounds to the distances at which the inside number occurs; true if it is there only.
  bool fits(Band& band) const {
    const int64_t rows = dims_[band.row], columns = dims_[band.column];
    const int64_t down = stride(band.row), right = stride(band.column);
    bool any = false;
    auto inside = [&](int64_t i, int64_t j) { return same(i * down + j * right, band.inside); };
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        if (!inside(i, j)) continue;
        band.lowest = any ? std::min(band.lowest, j - i) : j - i;
        band.highest = any ? std::max(band.highest, j - i) : j - i;
        any = true;
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const bool near = j - i >= band.lowest && j - i <= band.highest;
        if (near != inside(i, j)) return false;
      }
    }
    return any;
  }

  const char* data_;
  size_t width_;
  Dims dims_;
  int64_t count_;
};

class ConstantExpresser {
 public:
  explicit ConstantExpresser(Graph& graph) : graph_(graph) {}

  bool run() {
    const auto consumers = graph_.consumers();
    const size_t values = graph_.values.size();
    for (size_t v = 0; v < values; ++v) {
      const Tensor tensor = graph_.values[v].constant;
      if (!tensor.defined() || tensor.size() < kLarge || size_of(tensor.dtype()) == 0) continue;
      const auto id = static_cast<ValueId>(v);
      const bool output = std::count(graph_.outputs.begin(), graph_.outputs.end(), id) > 0;
      if (output || !meant(consumers[v])) continue;
      if (const auto band = Contents(tensor).band()) {
        name_ = graph_.values[v].name;
        replaced_.emplace_back(id, expression(tensor, *band));
      }
    }
    if (replaced_.empty()) return false;
    put_first();
    Rewrite rewrite(graph_);
    for (const auto& [from, to] : replaced_) rewrite.replace(from, to);
    rewrite.apply();
    eliminate_dead(graph_);
    return true;
  }

 private:
  // Every reader is elementwise or a view: an expression can go into its meaning.
  bool meant(const std::vector<NodeId>& readers) const {
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const Node& node = graph_.nodes[static_cast<size_t>(reader)];
      if (node.def == nullptr || node.def->lower == nullptr) return false;
      return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
        if (output == kAbsent) return true;
        Lowering lowering(graph_, [output](ValueId v) { return v == output; });
        return lowering.element(output, output_axes(graph_, output))->bound_level == 0;
      });
    });
  }

  ValueId constant(Tensor tensor) {
    const ValueId id = graph_.add_value(unique(), tensor.dtype());
    set_constant(graph_, id, std::move(tensor));
    return id;
  }

  ValueId integers(const std::vector<int64_t>& list, Dims dims) {
    Tensor tensor(DType::Int64, std::move(dims));
    std::copy(list.begin(), list.end(), tensor.as<int64_t>());
    return constant(std::move(tensor));
  }

  static Tensor element(const Tensor& tensor, int64_t position) {
    Tensor one(tensor.dtype(), {1});
    const size_t width = size_of(tensor.dtype());
    std::memcpy(one.mutable_data(),
                static_cast<const char*>(tensor.data()) + static_cast<size_t>(position) * width,
                width);
    return one;
  }

  std::string unique() { return fmt::format("{}/index_{}", name_, graph_.values.size()); }

  ValueId node(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node node;
    node.op = op;
    node.opset = kOpset;
    node.def = find_op("", op, kOpset);
    node.name = name_;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
    const ValueId output = graph_.add_value(unique());
    node.outputs = {output};
    graph_.nodes.push_back(std::move(node));
    const auto id = static_cast<NodeId>(graph_.nodes.size()) - 1;
    graph_.values[static_cast<size_t>(output)].producer = id;
    infer_node(graph_, id);
    ++added_;
    return output;
  }

  // 0, 1, ... along one dimension of several.
  ValueId indices(const Dims& dims, size_t dim) {
    std::vector<int64_t> shape(dims.size(), 1);
    shape[dim] = dims[dim];
    const ValueId range =
        node("Range", {integers({0}, {}), integers({dims[dim]}, {}), integers({1}, {})});
    return node("Reshape", {range, integers(shape, {static_cast<int64_t>(shape.size())})});
  }

  ValueId expression(const Tensor& tensor, const Band& band) {
    const Dims& dims = tensor.dims();
    const ValueId shape = integers(dims, {static_cast<int64_t>(dims.size())});
    if (band.outside < 0) {
      return node("ConstantOfShape", {shape}, {{"value", element(tensor, band.inside)}});
    }
    const ValueId distance = node("Sub", {indices(dims, band.column), indices(dims, band.row)});
    ValueId near = kAbsent;
    if (band.lowest > 1 - dims[band.row]) {
      near = node("LessOrEqual", {integers({band.lowest}, {1}), distance});
    }
    if (band.highest < dims[band.column] - 1) {
      const ValueId below = node("LessOrEqual", {distance, integers({band.highest}, {1})});
      near = near == kAbsent ? below : node("And", {near, below});
    }
    const ValueId chosen = node("Where", {near, constant(element(tensor, band.inside)),
                                          constant(element(tensor, band.outside))});
    return node("Expand", {chosen, shape});
  }

  // The new nodes read constants alone.
  void put_first() {
    std::rotate(graph_.nodes.begin(), graph_.nodes.end() - added_, graph_.nodes.end());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (ValueId output : graph_.nodes[n].outputs) {
        if (output != kAbsent) {
          graph_.values[static_cast<size_t>(output)].producer = static_cast<NodeId>(n);
        }
      }
    }
  }

  Graph& graph_;
  std::string name_;  // of the constant at hand
  std::vector<std::pair<ValueId, ValueId>> replaced_;
  long added_ = 0;
};

}  // namespace

bool express_constants(Graph& graph) { return ConstantExpresser(graph).run(); }

}  // namespace redfuser
