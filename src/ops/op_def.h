// The single definition of an operator: its name, its shape rule and its lowering.
//
// A lowering is the expression of one output element over elements of the inputs. Execution,
// fusion, constant folding and data propagation follow from it. Operators without a lowering (Conv,
// NonZero, ...) are opaque; src/cpu has a kernel for each.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace redfuser::ops {

// The node of a shape rule or lowering. Throws UserError, in the form `[Op] node "name": ...`, for
// attributes or inputs that are missing or of the wrong kind.
class NodeView {
 public:
  NodeView(const ir::Graph& graph, const ir::Node& node) : graph_(graph), node_(node) {}

  ir::ExprPool& pool() const { return *graph_.pool; }
  const ir::Node& node() const { return node_; }
  const ir::Graph& graph() const { return graph_; }
  int opset() const { return node_.opset; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int input) const;
  bool has_output(int output) const;
  const ir::Value& input(int input) const;  // UserError if absent
  DType dtype(int input) const { return this->input(input).dtype; }
  const std::vector<ir::Expr>& shape(int input) const { return this->input(input).shape; }
  int rank(int input) const { return static_cast<int>(shape(input).size()); }

  bool has(const std::string& attribute) const;
  int64_t integer(const std::string& attribute, int64_t fallback) const;
  double real(const std::string& attribute, double fallback) const;
  std::string text(const std::string& attribute, const std::string& fallback) const;
  std::vector<int64_t> integers(const std::string& attribute, std::vector<int64_t> fallback) const;
  // The same for strides, pads and other numbers that enter sums and products: UserError beyond 32
  // bits.
  std::vector<int64_t> small_integers(const std::string& attribute,
                                      std::vector<int64_t> fallback) const;

  // The symbolic contents of a small integer (or scalar) input; null if known at run time only.
  const std::vector<ir::Expr>* elements(int input) const;
  // The same as plain integers; nullopt unless every element is a constant.
  std::optional<std::vector<int64_t>> constant_integers(int input) const;
  // An axis attribute or value in [-rank, rank) made non-negative; UserError otherwise.
  int axis(int64_t value, int rank) const;

  [[noreturn]] void fail(const std::string& message) const;
  // Throws NeedsValues: the rule depends on run-time values.
  [[noreturn]] void fail_unknown(const std::string& message) const;

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
};

// Shape rule: set dtype and shape of every present output. A dimension with a Read (a size computed
// at run time) becomes a fresh symbol, which a run binds by applying the rule to its tensors.
class InferContext : public NodeView {
 public:
  InferContext(ir::Graph& graph, const ir::Node& node) : NodeView(graph, node), mutable_(graph) {}
  void set(int output, DType dtype, std::vector<ir::Expr> shape);
  // A list of `count` elements of this form.
  void set_list(int output, DType dtype, ir::Expr count, ListFormRef form);
  // A size known at run time only, named after the node.
  ir::Expr fresh_size(const std::string& hint);
  // Two sizes that must agree: UserError if they provably differ, a SizeCheck if that is undecided.
  void require_equal(ir::Expr a, ir::Expr b, const std::string& what);
  // Like require_equal, but `a` may also be 1.
  void require_broadcast(ir::Expr a, ir::Expr b, const std::string& what);
  // A size that may not exceed another: UserError or a SizeCheck, likewise.
  void require_at_most(ir::Expr a, ir::Expr b, const std::string& what);
  // broadcast_shapes, with a SizeCheck for every undecided dimension. A size computed by clamping
  // another (a slice of a table down to a sequence) is assumed to equal it.
  std::vector<ir::Expr> broadcast(const std::vector<ir::Expr>& a, const std::vector<ir::Expr>& b);
  // Changes the node's definition to `opaque`, for types without a lowering.
  void choose_opaque();
  // An output whose contents the rule knows (Constant).
  void set_constant(int output, Tensor tensor);

 private:
  void add_check(ir::Expr a, ir::Expr b, const std::string& what, bool broadcast);
  ir::Graph& mutable_;
};

// Lowering: the element of output `output()` at `index()`.
class LowerContext : public NodeView {
 public:
  using Reader = std::function<ir::Expr(ir::ValueId, std::vector<ir::Expr>)>;
  LowerContext(const ir::Graph& graph, const ir::Node& node, int output,
               std::span<const ir::Expr> index, const Reader& reader)
      : NodeView(graph, node), output_(output), index_(index), reader_(reader) {}

  int output() const { return output_; }
  std::span<const ir::Expr> index() const { return index_; }
  const ir::Value& result() const { return graph().values[node().outputs[output_]]; }
  // The element of input `input` at `index` (rank(input) indices).
  ir::Expr read(int input, std::vector<ir::Expr> index) const;
  // The element that numpy broadcasting pairs with index() (aligned at the right).
  ir::Expr read_broadcast(int input) const;
  // A new loop axis for reductions of this node; the same at every call with the same `which`.
  ir::Expr loop_axis(int which, ir::Expr extent) const;

 private:
  int output_;
  std::span<const ir::Expr> index_;
  const Reader& reader_;
};

// Positions along a dimension that an operator reads from an input. A run throws UserError for
// positions outside [low, high], unless inference proves that there are none.
struct Positions {
  std::string what;            // "index"
  std::vector<ir::Expr> axes;  // the input's dimensions that hold them
  ir::Expr position;           // an integer over `axes`
  ir::Expr size, low, high;    // sizes: the dimension's and the bounds
};

// How much precision an operator's floats need.
enum class PrecisionClass {
  Product,  // a contraction: operands and result may be narrow, sums are fp32 on every device
  Moves,    // re-indexes and selects
  Follows,  // no worse than its operands: sums, products, bounded functions
  Single,   // needs fp32: reductions, growing functions, rounding, quotients by data
};

struct OpDef {
  std::string_view name;
  std::string_view domain;  // "" is ai.onnx
  int since;                // first opset of this definition
  void (*infer)(InferContext&);
  ir::Expr (*lower)(LowerContext&);  // null: opaque
  bool random = false;               // a new result at every run: never folded, never merged
  // The opaque form that `infer` chooses (InferContext::choose_opaque) for types without a
  // lowering.
  const OpDef* opaque = nullptr;
  // For operators without a lowering; with one it follows from the expression.
  PrecisionClass (*sensitivity)(const NodeView&) = [](const NodeView&) {
    return PrecisionClass::Single;
  };
  // For operators that read or write at positions which are data. CPU kernels of opaque operators
  // check their positions themselves.
  std::vector<Positions> (*positions)(const LowerContext&) = nullptr;
  // The expression of an element of an operator without a lowering, for a GPU and the reference,
  // which have no kernel of their own for it. Null where the node has none. It may read more than
  // the kernels of src/cpu do, and takes no part in fusion.
  ir::Expr (*element)(LowerContext&) = nullptr;
};

constexpr OpDef with_positions(OpDef def,
                               std::vector<Positions> (*positions)(const LowerContext&)) {
  def.positions = positions;
  return def;
}

constexpr OpDef with_element(OpDef def, ir::Expr (*element)(LowerContext&)) {
  def.element = element;
  return def;
}

}  // namespace redfuser::ops
