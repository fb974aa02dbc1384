// Scalar expressions, the one symbolic language of RedFuser: sizes, tensor indices, the value of an
// operator's output element, the body of a reduction, the lift and the transport of a streaming
// form.
//
// An `Expr` is an immutable node in an `ExprPool`; equal expressions are the same pointer (hash
// consing), so `==` compares structure. Integer sums and products are kept as canonical
// polynomials, which makes sizes and indices comparable; float arithmetic is never reordered.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/scalars/expr_op.h"
#include "redfuser/tensor.h"

namespace redfuser::ir {

// The operation of a Reduce. Rankings and ArgMax/ArgMin have extra fields: args[2] is the rank
// (TopK, BottomK; 0 is the first), `integer` is 0 for the element and 1 for its index (Int64). Of
// equal elements the one of the lowest index comes first.
enum class Reduction : uint8_t { Sum, Prod, Max, Min, ArgMax, ArgMin, TopK, BottomK };

// "sum", "max", ...
std::string_view name_of(Reduction reduction);

// The element of a rank, or its index.
constexpr bool is_ranked(Reduction r) { return r == Reduction::TopK || r == Reduction::BottomK; }
// The index of an extreme.
constexpr bool is_arg(Reduction r) { return r == Reduction::ArgMax || r == Reduction::ArgMin; }
// The result is an element or its index, not a combination of all elements.
constexpr bool picks_element(Reduction r) { return is_ranked(r) || is_arg(r); }
// Whether larger elements come first.
constexpr bool wants_large(Reduction r) {
  return r == Reduction::Max || r == Reduction::ArgMax || r == Reduction::TopK;
}

// Leaves of cascades and streaming forms (src/cascade).
enum class LeafKind : uint8_t {
  Result,     // final (or, while streaming, running) result of stage `index`
  State,      // accumulator `index`
  OldResult,  // running result before the present tile or merge
  NewResult,  // running result after it
  Product,    // the finished contraction of a product step
  Count,      // number of elements of the streamed axis folded into the state
};

struct ExprNode;
using Expr = const ExprNode*;

struct ExprNode {
  ExprOp op;
  DType dtype;
  Reduction reduction = Reduction::Sum;
  LeafKind leaf_kind = LeafKind::Result;
  int64_t integer = 0;       // Constant of integer dtype; axis, leaf or value number; symbol number
  double number = 0;         // Constant of float dtype
  uint32_t id = 0;           // creation order within the pool: a deterministic sort key
  uint32_t bound_level = 0;  // nesting depth of Reduce below this node
  uint32_t depth = 1;        // of the tree below, itself included
  std::vector<Expr> args = {};
  std::vector<uint32_t> free_axes = {};  // sorted axis numbers that occur free
  bool has_leaf = false;                 // some Leaf below
  bool has_read = false;                 // some Read below

  bool is_constant() const { return op == ExprOp::Constant; }
  bool is_constant(double value) const;
  bool depends_on(Expr axis) const;
  // Parts of a Reduce.
  Expr bound_axis() const { return args[0]; }
  Expr extent() const;  // of a Reduce (its axis' extent) or an Axis
  Expr body() const { return args[1]; }
};

class ExprPool {
 public:
  ExprPool();
  // A pool that extends `base`: it has the expressions of `base`, under the same numbers, and its
  // own. From then on `base` accepts no new expressions (InternalError), so several threads may
  // extend one pool.
  explicit ExprPool(std::shared_ptr<const ExprPool> base);
  ~ExprPool();
  ExprPool(const ExprPool&) = delete;
  ExprPool& operator=(const ExprPool&) = delete;

  Expr number(double value, DType dtype);  // any dtype; integers are truncated
  Expr integer(int64_t value) { return number_int(value, DType::Int64); }
  Expr number_int(int64_t value, DType dtype);
  Expr boolean(bool value) { return number_int(value, DType::Bool); }
  Expr symbol(const std::string& name);             // the same name is the same symbol
  Expr fresh_symbol(const std::string& hint);       // a new symbol, e.g. for a data-dependent size
  Expr axis(const std::string& name, Expr extent);  // a new axis at every call
  Expr shared_axis(const std::string& key, Expr extent);  // the same key and extent: the same axis
  Expr leaf(LeafKind kind, int64_t index, DType dtype);
  Expr read(int64_t value, DType dtype, std::vector<Expr> indices);

  // Builds an operator node with folding of constants and canonical integer form. The result
  // dtype is the first argument's (Bool for comparisons, the second's for Select).
  Expr make(ExprOp op, std::vector<Expr> args);
  Expr cast(DType dtype, Expr value);
  Expr select(Expr condition, Expr then, Expr otherwise);
  // Σ, max, ... of `body` over `axis`; the bound axis is renamed so that equal reductions are
  // equal.
  Expr reduce(Reduction reduction, Expr axis, Expr body, Expr rank = nullptr, bool index = false);

  Expr add(Expr a, Expr b) { return make(ExprOp::Add, {a, b}); }
  Expr sub(Expr a, Expr b) { return make(ExprOp::Sub, {a, b}); }
  Expr mul(Expr a, Expr b) { return make(ExprOp::Mul, {a, b}); }
  Expr div(Expr a, Expr b) { return make(ExprOp::Div, {a, b}); }
  Expr floordiv(Expr a, Expr b) { return make(ExprOp::FloorDiv, {a, b}); }
  Expr floormod(Expr a, Expr b) { return make(ExprOp::FloorMod, {a, b}); }

  const std::string& symbol_name(Expr symbol) const;
  const std::string& axis_name(Expr axis) const;
  size_t size() const;

  // Replaces nodes (axes, leaves, reads, symbols) and rebuilds the nodes above them. `replace`
  // returns null to keep a node; it is called once per distinct node, top down.
  Expr rewrite(Expr root, const std::function<Expr(Expr)>& replace);
  Expr substitute(Expr root, const std::vector<std::pair<Expr, Expr>>& map);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  mutable std::atomic<bool> extended_ = false;  // another pool has this one as its base
  Expr intern(ExprNode node);
  Expr find_symbol(const std::string& name) const;
  Expr find_shared_axis(const std::pair<std::string, Expr>& key) const;
  size_t symbol_count() const;
  size_t axis_count() const;
  Expr rebuild(Expr node, std::vector<Expr> args);
  friend class PolynomialBuilder;
};

// Readable text: `exp(%3[b,h,i,j] - R0)`. Values print as %id, symbols and axes by name.
std::string to_string(const ExprPool& pool, Expr expr);

// Calls `visit` once per distinct node below and including `root`, children first. Descends into
// the bodies of reductions when `into_reductions`.
void visit(Expr root, const std::function<void(Expr)>& visit, bool into_reductions = true);

// Whether the last bit of a float operand of `expr` may change its value by more than that.
bool jumps(Expr expr);

}  // namespace redfuser::ir
