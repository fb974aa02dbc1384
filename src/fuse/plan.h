// A plan: the steps that compute a graph's outputs, in order. Steps are expressions over values;
// sizes are symbols, so one plan serves every shape.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cascade/report.h"
#include "cascade/streaming.h"
#include "ir/graph.h"

namespace redfuser::fuse {

// Elementwise: every output element is an expression over reads. All outputs share `axes`.
struct MapStep {
  struct Output {
    ir::ValueId value;
    ir::Expr body;
  };
  std::vector<ir::Expr> axes;  // the outputs' dimensions, outermost first; extents may be 1
  std::vector<Output> outputs;
};

// Any other reduction, one element per point of `axes`: out[axes] = body, where body contains
// Reduce nodes of any rank and nesting.
struct ReduceStep {
  ir::ValueId value;
  std::vector<ir::Expr> axes;
  ir::Expr body;
};

// out[batch, m, n] = epilogue(p_0, p_1, ...) with p_i = Σ_k a[batch, m, k] · b_i[batch, k, n]: one
// matrix times several; operands are Reads with indices affine in these axes. `axes` are the
// output's dimensions, each one of batch, m, n (or integer 0 for a dimension of one element).
//
// Operands of 8-bit integers have p_i = Σ_k (a − a_zero) · (b_i − b_zeros_i) in int32, which wraps
// around. A zero point is a constant, or a Read of int32 or of 8-bit integers under a cast, with
// indices affine in the axes of its operand other than k; null for 0.
struct ProductStep {
  ir::ValueId value;
  std::vector<ir::Expr> batch, m, n;
  ir::Expr k;
  ir::Expr a;
  std::vector<ir::Expr> b;
  ir::Expr epilogue;  // over Leaf Product i, reads and axes
  std::vector<ir::Expr> axes;
  ir::Expr a_zero = nullptr;
  std::vector<ir::Expr> b_zeros;  // as many as b, for integers

  bool of_integers() const { return !b_zeros.empty(); }
};

struct CascadeStep {
  cascade::Streaming streaming;
  int report = -1;  // its entry in the report
};

// A node without a lowering, run by the kernel of its operator, where ops::takes_epilogue with what
// follows: out[axes] = body over Leaf Product 0, which is the node's element at `axes`, other reads
// and axes.
struct OpaqueStep {
  struct Epilogue {
    ir::ValueId value;
    std::vector<ir::Expr> axes;  // the output's dimensions, which are the node's
    ir::Expr body;
  };
  ir::NodeId node;
  std::optional<Epilogue> epilogue = std::nullopt;
};

// The same bytes under another shape.
struct AliasStep {
  ir::ValueId value, source;
};

using StepKind = std::variant<MapStep, ReduceStep, ProductStep, CascadeStep, OpaqueStep, AliasStep>;

struct Step {
  StepKind kind;
  std::string label;  // names of the user's nodes that it covers, for traces
  std::vector<ir::NodeId> nodes;
  std::vector<ir::NodeId> binds;  // nodes whose output sizes are bound from their inputs first
  // Nodes of other steps whose output sizes, bound in a run, the step uses.
  std::vector<ir::NodeId> sized_by = {};
  std::vector<ir::ValueId> reads;  // values needed before
  std::vector<ir::ValueId> writes;
  std::vector<ir::ValueId> frees;  // values without a reader after this step
};

struct Plan {
  std::shared_ptr<const ir::Graph> graph;  // values, shapes, names; steps refer to it
  std::vector<Step> steps;
  std::map<ir::ValueId, ir::ValueId> alias_roots;  // the root of every alias
  cascade::Report report;

  // The value that owns the bytes of `value`: itself, unless an AliasStep makes it.
  ir::ValueId root(ir::ValueId value) const {
    const auto alias = alias_roots.find(value);
    return alias == alias_roots.end() ? value : alias->second;
  }
};

std::string to_string(const Plan& plan);

}  // namespace redfuser::fuse
