// Constant matrices that are floats of few bits: (code − zero) · scale in blocks. So are filters,
// tensors of more dimensions, with blocks of whole filters.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/thread_pool.h"
#include "ir/graph.h"

namespace redfuser::passes {

// Follows constants while they are folded, and finds the codes of those that are functions of
// integers: whatever nodes made them, by their expressions alone.
class CodeFinder {
 public:
  explicit CodeFinder(ir::Graph& graph) : graph_(graph) {}

  // `body` is the element of a constant at `axes`, over reads of constants.
  void note(ir::ValueId value, const std::vector<ir::Expr>& axes, ir::Expr body);
  bool knows(ir::ValueId value) const { return origins_.count(value) > 0; }
  // Whether find() may read the constant for the codes of another one.
  bool reads(ir::ValueId value) const { return read_.count(value) > 0; }
  // The codes of a matrix or of filters that were noted; null if its elements have no such form, if
  // a code or a zero point has more than 8 bits, if a scale is not a number of the matrix' type, or
  // if the constant differs from what the codes give. Evaluates them on the pool's threads.
  std::shared_ptr<const ir::WeightCodes> find(ir::ValueId value, ThreadPool& pool);

 private:
  struct Origin {
    std::vector<ir::Expr> axes;
    ir::Expr body;
  };
  // element = (code − zero) · scale; zero and scale may be null.
  struct Parts {
    ir::Expr code = nullptr, zero = nullptr, scale = nullptr;
  };

  ir::Expr traced(ir::Expr body) const;
  bool has_integers(ir::Expr body, int64_t least) const;
  std::optional<Parts> parts_of(ir::Expr element) const;
  Parts difference_of(ir::Expr integer) const;
  bool set_filters(ir::WeightCodes& codes, const Origin& origin, const Parts& parts) const;
  bool set_blocks(ir::WeightCodes& codes, const Origin& origin, const Parts& parts) const;
  bool alike_in_blocks(ir::Expr e, ir::Expr axis, int64_t block) const;
  Tensor evaluated(const std::vector<ir::Expr>& axes, ir::Expr body, ThreadPool& pool);

  ir::Graph& graph_;
  std::map<ir::ValueId, Origin> origins_;
  std::set<ir::ValueId> read_;  // by origins
};

}  // namespace redfuser::passes
