// The graph: values and nodes by integer id, in topological order.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/tensors/lists.h"
#include "ir/expr.h"
#include "redfuser/tensor.h"

namespace redfuser::ops {
struct OpDef;
}

namespace redfuser::ir {

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr ValueId kAbsent = -1;  // an absent optional input or output

using Attribute = std::variant<int64_t, float, std::string, Tensor, std::vector<int64_t>,
                               std::vector<float>, std::vector<std::string>>;
using Attributes = std::map<std::string, Attribute>;

// A constant matrix in few bits: element [line, depth] is (code − zero) · scale, rounded to the
// value's type, with the scale and zero point of a block of `block` elements along the depth.
struct WeightCodes {
  int bits = 8;           // 4 or 8, of a code
  size_t depth_axis = 0;  // of the matrix' two axes, the one that blocks divide
  int64_t lines = 0, depth = 0, block = 0;
  int zero = 0;   // of all blocks where `zeros` is not defined
  Tensor codes;   // UInt8 [lines, depth]
  Tensor scales;  // Float32, numbers of the value's type; [lines, ⌈depth / block⌉]
  Tensor zeros;   // UInt8, as `scales`
  // Constants of the graph with the same for a GPU (passes::store_codes), once it has them.
  ValueId stored_codes = kAbsent, stored_scales = kAbsent, stored_zeros = kAbsent;

  int64_t blocks() const { return (depth + block - 1) / block; }
};

struct Value {
  std::string name;  // as in the file; unique
  DType dtype = DType::Undefined;
  std::vector<Expr> shape;                   // Int64 expressions over symbols
  ListFormRef list;                          // of a list; null: open, or a constant
  NodeId producer = -1;                      // -1 for inputs and initializers
  int output_index = 0;                      // which output of the producer
  Tensor constant;                           // defined for initializers and folded values
  std::shared_ptr<const WeightCodes> codes;  // the constant again, where it is known in few bits
  // The symbolic contents of a small tensor (at most kMaxElements), if known, for shape arithmetic
  // and scalars. Row-major; elements contain no reads.
  std::vector<Expr> elements;
  bool has_elements = false;
  // The elements are functions of their indices and of sizes alone (masks, positions), so the
  // tensor need not be stored.
  bool indexed = false;

  bool is_constant() const { return constant.defined(); }
  // The form of a list's elements, as far as it is known.
  ListFormRef list_form() const {
    if (is_constant()) return form_of(constant);
    return list != nullptr ? list : open_form();
  }
  // Constants and inputs of the graph.
  bool is_given() const { return producer < 0; }
};
inline constexpr int64_t kMaxElements = 64;

struct Node {
  std::string op, domain;
  const ops::OpDef* def = nullptr;
  int opset = 0;     // the version of its domain that the file asks for
  std::string name;  // the user's node, e.g. "/encoder/layer.0/Softmax"
  int source = -1;   // its index in the file's main graph; shared by the expansion
  std::vector<ValueId> inputs, outputs;
  Attributes attributes;
};

// Two sizes that must be equal although inference cannot prove it; a run compares them once both
// are bound. `where` is the beginning of the error's message.
struct SizeCheck {
  Expr a, b;
  std::string where;
  bool broadcast = false;  // `a` may also be 1
};

struct Graph {
  std::shared_ptr<ExprPool> pool;
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological order
  std::vector<ValueId> inputs, outputs;
  std::vector<SizeCheck> size_checks;

  ValueId add_value(std::string name, DType dtype = DType::Undefined);
  // Nodes that read each value, in order, without repeats; index by ValueId.
  std::vector<std::vector<NodeId>> consumers() const;
};

// A copy with a pool of its own, which extends the graph's pool: the graph's expressions are valid
// in both, and changes of the copy do not affect the graph. Several threads may copy one graph at
// the same time.
Graph clone(const Graph& graph);

// Throws InternalError unless ids are in range, order is topological, names are unique, every value
// has one producer and every dtype and shape is set.
void verify(const Graph& graph);

// One line per node: `%5 f32[batch,seq,64] = Add(%3, %4)  # "/layer/Add"`.
std::string to_string(const Graph& graph);

}  // namespace redfuser::ir
