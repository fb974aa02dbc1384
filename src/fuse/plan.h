// A plan: the steps that compute a graph's outputs, in order. Steps are expressions over values;
// sizes are symbols, so one plan serves every shape.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cascade/report.h"
#include "cascade/streaming.h"
#include "ir/graph.h"

namespace redfuser {

// Elementwise: every output element is an expression over reads. All outputs share `axes`.
struct MapStep {
  struct Output {
    ValueId value;
    Expr body;
  };
  std::vector<Expr> axes;  // the outputs' dimensions, outermost first; extents may be 1
  std::vector<Output> outputs;
};

// A reduction that is no cascade and no matrix product, one element per `axes` point:
// out[axes] = body, where body holds Reduce nodes. Any rank, any nesting; the plain way.
struct ReduceStep {
  ValueId value;
  std::vector<Expr> axes;
  Expr body;
};

// out[batch, m, n] = epilogue(p_0, p_1, ...) with p_i = Σ_k a[batch, m, k] · b_i[batch, k, n]: one
// matrix times several; operands are Reads with indices affine in these axes. `axes` are the
// output's dimensions, each one of batch, m, n (or integer 0 for a dimension of one element).
struct ProductStep {
  ValueId value;
  std::vector<Expr> batch, m, n;
  Expr k;
  Expr a;
  std::vector<Expr> b;
  Expr epilogue;  // over Leaf Product i, reads and axes
  std::vector<Expr> axes;
};

struct CascadeStep {
  Streaming streaming;
  int report = -1;  // its entry in the report
};

// A node with no lowering, run by the CPU kernel of its name.
struct OpaqueStep {
  NodeId node;
};

// The same bytes under another shape.
struct AliasStep {
  ValueId value, source;
};

using StepKind = std::variant<MapStep, ReduceStep, ProductStep, CascadeStep, OpaqueStep, AliasStep>;

struct Step {
  StepKind kind;
  std::string label;  // names of the user's nodes that it covers, for traces
  std::vector<NodeId> nodes;
  std::vector<NodeId> binds;   // nodes whose output sizes are bound from their inputs first
  std::vector<ValueId> reads;  // values needed before
  std::vector<ValueId> writes;
  std::vector<ValueId> frees;  // values with no reader after this step
};

struct Plan {
  std::shared_ptr<const Graph> graph;  // values, shapes, names; steps refer to it
  std::vector<Step> steps;
  Report report;
};

std::string to_string(const Plan& plan);

}  // namespace redfuser
