// Nodes of a body that runs once per element of an axis, as nodes over the whole axis.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace redfuser::onnx {

// Adds nodes to `graph` that compute values of `body` for all elements t of a leading axis at once:
//
//   y[i...] = f(x[j...], w)   in every run of the body, x = X[t]
//   Y[t, i...] = f(X[t, j...], w)
//
// A node keeps its operator; its inputs get dimensions of one element, and its axes are moved, as
// far as needed. The expression of the result proves each form, so that no operator has a rule here
// (compare the batching rules of vmap: Frostig, Johnson and Leary, Compiling machine learning
// programs via high-level tracing, 2018).
class Batching {
 public:
  // The graphs share a pool and live as long as this. `count` is the size of the axis; `name_for`
  // makes a unique name of a wanted one.
  Batching(const ir::Graph& body, ir::Graph& graph, ir::Expr count,
           std::function<std::string(const std::string&)> name_for);

  // Sets what a value of the body is in the graph: the same in every run, or batched. Other values
  // are those of the same number, the same in every run.
  void set(ir::ValueId of_body, ir::ValueId value, bool batched);
  // Adds a node of the body whose inputs are set, and sets its outputs. False where no form is
  // found. Throws as infer_node does for a node whose inputs are not batched.
  bool add(const ir::Node& node);

  ir::ValueId value(ir::ValueId of_body) const { return place(of_body).value; }
  bool is_batched(ir::ValueId of_body) const { return place(of_body).batched; }

 private:
  struct Place {
    ir::ValueId value = ir::kAbsent;
    bool batched = false;
  };
  // How a node is changed.
  struct Form {
    bool aligned = false;  // inputs get dimensions of one element behind the leading one
    bool moved = false;    // axes of attributes are one further
    int moved_input = -1;  // the constant input whose axes are
    enum class All { No, Attribute, Input } all = All::No;  // no axes: all but the leading one
  };

  Place place(ir::ValueId of_body) const;
  void add_unbatched(const ir::Node& node);
  std::vector<Form> forms(const ir::Node& node) const;
  bool add(const ir::Node& node, const Form& form);
  std::optional<ir::Node> formed(const ir::Node& node, const Form& form);
  ir::ValueId aligned(ir::ValueId value, int64_t ones, const ir::Node& origin);
  ir::ValueId axes(std::vector<int64_t> values);
  bool proved(const ir::Node& node, const ir::Node& added) const;
  bool proved(ir::ValueId of_body, ir::ValueId added) const;
  int rank_of(const ir::Node& node) const;

  const ir::Graph& body_;
  ir::Graph& graph_;
  const ir::Expr count_;
  const std::function<std::string(const std::string&)> name_for_;
  std::map<ir::ValueId, Place> values_;  // by value of the body
  ir::NodeId first_ = 0;                 // of the nodes added for the current one
};

}  // namespace redfuser::onnx
