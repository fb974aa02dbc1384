// The walk through a model that turns its nodes into primitive nodes of a Graph.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "onnx/functions/functions.h"
#include "onnx/functions/schema_body.h"
#include "onnx/import/control_call.h"
#include "onnx/proto/attributes.h"
#include "onnx/proto/external_data.h"
#include "redfuser/redfuser.h"

namespace onnx {
class GraphProto;
class TensorProto;
class ValueInfoProto;
}  // namespace onnx

namespace redfuser::onnx {

std::unordered_set<std::string> initializer_names(const ::onnx::GraphProto& graph);
// `weights`, which may be null, have tensors in place of initializers, and values of inputs that
// are the same in every run.
//
// Whether a run gives the initializer of this name: its tensor is undefined.
bool given_by_run(const NamedTensors* weights, const std::string& name);
// The inputs that a run gives, in order: those without an initializer or value, and initializers
// that it gives.
std::vector<const ::onnx::ValueInfoProto*> free_inputs(const ::onnx::GraphProto& graph,
                                                       const NamedTensors* weights);
// The inputs whose initializers a run may give, in order: none before version 4 of the IR, where
// every initializer is an input.
std::vector<const ::onnx::ValueInfoProto*> overridable_inputs(const ::onnx::ModelProto& model);

// Every primitive node is inferred when it is added, since context-dependent bodies need the types
// of their inputs. Calls of local functions and composite operators are replaced by their bodies;
// every node of an expansion keeps the name and index of the user's node.
//
// Control flow is resolved where conditions and counts are known: If becomes its branch, Loop and
// Scan repeat their body. The Interpreter knows them, since it computes nodes when they are added.
// The Importer turns the rest into nodes that stand for a ControlCall.
class ModelWalk {
 public:
  virtual ~ModelWalk() = default;
  ModelWalk(const ModelWalk&) = delete;
  ModelWalk& operator=(const ModelWalk&) = delete;

 protected:
  // `path` is the model's path, which starts error messages. `weights` take the place of the data
  // of initializers with their names, and undefined ones make them inputs. Those of inputs make
  // them constants. May be null.
  ModelWalk(std::shared_ptr<const ::onnx::ModelProto> model, const std::string& path,
            std::shared_ptr<const NamedTensors> weights);

  // Names in force in one body: the main graph's, a function's or a subgraph's.
  struct Scope {
    std::unordered_map<std::string, ir::ValueId> values;
    const Scope* parent = nullptr;  // whose names a subgraph may use
    Opsets opsets;
    std::unordered_map<std::string, std::string> results;  // formal output -> the caller's name
    BoundAttributes attributes;
    std::shared_ptr<const void> owner;  // keeps the nodes' tensors alive; null: they are copied
    std::string prefix;                 // of new names; empty in the main graph
    int depth = 0;
    bool in_function = false;  // its nodes may refer to `attributes`
    bool promotes = false;     // BodyTypes::promotes
    bool is_program = false;   // of a program's own body, whose nodes keep their own names
  };
  // The user's node that is being expanded.
  struct Origin {
    std::string name;
    int source = -1;
  };

  // Iterations of control flow that the walk repeats at most.
  static constexpr int64_t kMaxUnrolled = 64;

  // Differences between an import and a run.
  //
  // Before every node and every iteration: UserError where there are too many.
  virtual void count_step() = 0;
  // After a node is added and inferred.
  virtual void node_added(ir::NodeId node) = 0;
  // NeedsValues beyond so many iterations of one control flow node.
  virtual int64_t max_iterations() const = 0;
  // The value under the name that a caller has for it.
  virtual ir::ValueId renamed(ir::ValueId value, const std::string& name, const Origin& origin) = 0;
  // The name of a value of a body: `wanted`, or one made of it.
  virtual std::string name_for(const std::string& wanted) = 0;
  // The state before the iterations of a control flow node.
  struct Mark {
    size_t values, nodes, size_checks, calls;
  };
  // After an iteration: its values but for `parts` and `states`, whose numbers may change, are not
  // asked for again. The parts are part of the mark from then on.
  virtual void iteration_done(Mark& mark, std::vector<ir::ValueId>& parts,
                              std::vector<ir::ValueId>& states) = 0;
  // Whether control flow that only a run resolves becomes a call.
  virtual bool makes_calls() const = 0;

  // Validates the model and registers initializers. Returns the nodes to visit, in order.
  std::vector<int> begin(Scope& scope);
  // Visits the main graph's nodes, and sets the outputs.
  void add_main(Scope& scope, const std::vector<int>& order);
  // Adds the nodes of a subgraph whose inputs and captured values have these names in `scope`.
  // Sets the graph's outputs.
  void add_body(const Subgraph& body, Scope& scope);
  // Adds a node whose outputs are there, and infers it.
  void append(ir::Node node);
  // Adds what a node of a body computes. UserError where that is not possible.
  void add_node(const ::onnx::NodeProto& node, Scope& scope, const Origin& origin);
  // The main graph's inputs, in the order of a run's.
  std::vector<const ::onnx::ValueInfoProto*> main_inputs() const;
  bool given_by_run(const std::string& initializer) const {
    return onnx::given_by_run(weights_.get(), initializer);
  }
  // The tensor of an initializer of the main graph.
  Tensor initial_value(const ::onnx::TensorProto& tensor);
  Mark mark() const {
    return {graph_.values.size(), graph_.nodes.size(), graph_.size_checks.size(), calls_.size()};
  }
  // Removes everything that was added after the mark.
  void roll_back(const Mark& before);

  const std::shared_ptr<const ::onnx::ModelProto> model_;
  const std::string path_;
  ir::Graph graph_;
  std::vector<std::shared_ptr<const ControlCall>> calls_;  // of nodes of graph_
  FunctionLibrary functions_;

 private:
  std::string where(const ::onnx::NodeProto& node, const Origin& origin) const;
  void check_types(const ::onnx::GraphProto& main) const;
  void add_initializers(Scope& scope, const std::vector<int>& order);
  void set_outputs(const Scope& scope);
  // Null for an initializer, and for an input that a run gives.
  const Tensor* value_of_input(const std::string& name) const;

  void add_constant_node(const ::onnx::NodeProto& node, const AttributeSource& source,
                         Scope& scope);
  void add_primitive(const ::onnx::NodeProto& node, const ops::OpDef& def, int opset,
                     const AttributeSource& source, Scope& scope, const Origin& origin);
  void add_call(const ::onnx::NodeProto& node, const ::onnx::FunctionProto& function,
                const Opsets& opsets, const BodyTypes& types,
                const std::shared_ptr<const void>& owner, Scope& scope, const Origin& origin);
  void run_body(const ::onnx::FunctionProto& function, Scope& scope, const Origin& origin);
  ir::ValueId named(ir::ValueId value, const std::string& name, const Origin& origin);
  // The value in this type; Undefined: as it is.
  ir::ValueId as_type(ir::ValueId value, DType dtype, const Scope& scope, const Origin& origin);
  // The same of a result, which keeps its name.
  ir::ValueId result_as_type(ir::ValueId value, DType dtype, const Scope& scope,
                             const Origin& origin);

  // Control flow (model_walk_control.cpp).
  // The only element of a condition or a count. Throws NeedsValues where only a run knows it, and
  // UserError, starting with `here`, for a value that is none.
  int64_t decided(ir::ValueId id, const char* what, const std::string& here) const;
  // True if the node is one of its operators.
  bool add_control(const ::onnx::NodeProto& node, int opset, Scope& scope, const Origin& origin);
  void resolve_control(const ::onnx::NodeProto& node, int opset, Scope& scope,
                       const Origin& origin);
  void add_if(const ::onnx::NodeProto& node, Scope& scope, const Origin& origin);
  void add_loop(const ::onnx::NodeProto& node, Scope& scope, const Origin& origin);
  void add_scan(const ::onnx::NodeProto& node, int opset, Scope& scope, const Origin& origin);
  // One pass of a scan over inputs without batch: final states, then stacked outputs.
  std::vector<ir::ValueId> scanned(const ::onnx::NodeProto& node, std::vector<ir::ValueId> states,
                                   const std::vector<ir::ValueId>& inputs, int axis_shift,
                                   Scope& scope, const Origin& origin);
  // The results of `scanned` where no iteration depends on another one, by nodes over the whole
  // axis (model_walk_map.cpp); empty where one does, or a node of the body has no such form. `axes`
  // are those of the inputs, not negative.
  std::vector<ir::ValueId> mapped(const ::onnx::NodeProto& node,
                                  const std::vector<ir::ValueId>& states,
                                  const std::vector<ir::ValueId>& inputs,
                                  const std::vector<int64_t>& axes,
                                  const std::vector<int64_t>& output_axes, const Scope& scope,
                                  const Origin& origin);
  std::vector<ir::ValueId> mapped_body(const ir::Graph& body, const Mark& before,
                                       const std::vector<ir::ValueId>& results,
                                       const std::vector<ir::ValueId>& slices,
                                       const std::vector<ir::ValueId>& whole, ir::Expr count);
  // The value with dimension `from` moved to `to`.
  ir::ValueId moved_axis(ir::ValueId value, int64_t from, int64_t to, const Scope& scope,
                         const Origin& origin);
  // Runs a subgraph on `inputs` and returns its outputs. `names` (empty, or one per output) are the
  // names that results get where the body computes them.
  std::vector<ir::ValueId> run_subgraph(const ::onnx::GraphProto& graph,
                                        const std::vector<ir::ValueId>& inputs,
                                        const std::vector<std::string>& names, const Scope& scope,
                                        const Origin& origin);
  // Values stacked along a new axis; `empty` is the stack of none, undefined where its type is
  // open.
  ir::ValueId stacked(const std::vector<ir::ValueId>& parts, int axis, const Tensor& empty,
                      const Scope& scope, const Origin& origin);
  // The stack of output `output` of a Loop's body that does not run: of the type that the file
  // declares, else of that of a first iteration.
  Tensor empty_output(const ::onnx::GraphProto& body, int output,
                      const std::vector<ir::ValueId>& states, const Scope& scope,
                      const Origin& origin);
  // A node of our own, with one output.
  ir::ValueId emit(const std::string& op, std::vector<ir::ValueId> inputs,
                   ir::Attributes attributes, const Scope& scope, const Origin& origin);
  void bind_outputs(const ::onnx::NodeProto& node, const std::vector<ir::ValueId>& results,
                    Scope& scope, const Origin& origin);

  // Calls (model_walk_calls.cpp).
  struct ValueType {
    DType dtype = DType::Undefined;
    std::vector<ir::Expr> shape;
    ListFormRef list = nullptr;  // of lists
  };
  static ValueType type_of_value(const ir::Value& value);
  // Adds a value of the type.
  ir::ValueId add_typed(const std::string& name, const ValueType& type);
  using ValueTypes = std::vector<ValueType>;
  // The stack of a type without iterations; undefined for types that are not numbers.
  static Tensor stack_without(const ValueType& stack, int64_t axis);
  // Adds a node for control flow that is not resolved; NeedsValues where the types of its outputs
  // do not follow.
  void add_control_call(const ::onnx::NodeProto& node, int opset, Scope& scope,
                        const Origin& origin, std::string reason);
  // The call, and the inputs of its node.
  ControlCall call_of(const ::onnx::NodeProto& node, const Scope& scope, const Origin& origin,
                      std::vector<ir::ValueId>& inputs) const;
  // The types that a body computes of arguments of these types, found by adding it for a moment.
  ValueTypes computed_types(const ::onnx::GraphProto& body, const ValueTypes& arguments,
                            const Scope& scope, const Origin& origin);
  // The same, or those that the file declares; empty, with the reason in `failure`, where it
  // declares none.
  ValueTypes body_types(const ::onnx::GraphProto& body, const ValueTypes& arguments,
                        const Scope& scope, const Origin& origin, std::exception_ptr& failure);
  ValueTypes if_types(const ControlCall& call, const Scope& scope, const Origin& origin);
  ValueTypes loop_types(const ControlCall& call, const std::vector<ir::ValueId>& inputs,
                        const Scope& scope, const Origin& origin);
  // The states and scan inputs of an iteration, and the number of iterations.
  ValueTypes iteration_types(const ControlCall& call, const std::vector<ir::ValueId>& inputs,
                             ir::Expr& length) const;
  // The types of the body's outputs, with the carried values' types in `arguments` made a fixed
  // point: sizes that an iteration changes are open.
  ValueTypes settled_types(const ControlCall& call, ValueTypes& arguments, const Scope& scope,
                           const Origin& origin);
  // A type for values of either type: sizes that differ are known at run time only.
  ValueType joined(const ValueType& a, const ValueType& b, const std::string& here);

  // The value name for `name` of a body: the caller's where it is one of the body's results.
  std::string value_name(const std::string& name, const Scope& scope);
  static const ir::ValueId* find_value(const std::string& name, const Scope& scope);
  std::vector<ir::ValueId> input_ids(const ::onnx::NodeProto& node, const Scope& scope,
                                     const Origin& origin) const;

  const std::shared_ptr<const NamedTensors> weights_;
  ExternalData external_;
};

}  // namespace redfuser::onnx
