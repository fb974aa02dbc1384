// A cascade: reductions over one streamed axis, later ones using the results of earlier ones.
//
//   d_i = ⊕_i over l of F_i(x_l, d_1 .. d_{i-1})        (RedFuser, Xing et al., arXiv 2603.10026)
//
// It is pure algebra: expressions over axes, reads and results, with no operator names.
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"
#include "ir/graph.h"

namespace redfuser::cascade {

struct Stage {
  ir::Reduction reduction = ir::Reduction::Sum;
  // F over the streamed axis, the row axes, `columns`, reads and Result leaves of earlier stages.
  // Inner reductions that depend on the streamed axis are contractions, computed tile by tile.
  ir::Expr body = nullptr;
  std::vector<ir::Expr> columns;  // further output axes of a contraction (a value row's features)
  int64_t k = 1;                  // TopK, BottomK: number of elements kept
  DType dtype = DType::Float32;
  ir::NodeId node = -1;  // the graph node that performs the reduction, for reports
};

struct CascadeOutput {
  ir::ValueId value = -1;
  // One element of the value over row axes, Result leaves (a TopK result is read through its rank:
  // see result_of_rank) and either columns or the streamed axis.
  ir::Expr body = nullptr;
  std::vector<ir::Expr> axes;  // the value's axes, outermost first: rows, columns, streamed;
                               // constants (integer 0) for dimensions of one element
  bool maps_back = false;      // has the streamed axis
};

struct Cascade {
  std::vector<ir::Expr> rows;  // parallel axes
  ir::Expr stream = nullptr;   // the streamed axis
  std::vector<Stage> stages;
  std::vector<CascadeOutput> outputs;
};

std::string to_string(const ir::ExprPool& pool, const Cascade& cascade);

}  // namespace redfuser::cascade
