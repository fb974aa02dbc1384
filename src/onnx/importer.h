// The walk that turns a model's nodes into primitive nodes of a Graph.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "onnx/attributes.h"
#include "onnx/external_data.h"
#include "onnx/functions.h"

namespace redfuser {

// Expands as it goes: a context-dependent body needs the types of its inputs, so every primitive
// node is inferred when it is added. Calls of local functions and composite operators are replaced
// by their bodies; every node of an expansion keeps the name and index of the user's node.
class Importer {
 public:
  // `where` starts error messages: the path of the model.
  Importer(std::shared_ptr<const onnx::ModelProto> model, const std::string& path);

  // Throws UserError for everything that is wrong with the model.
  Graph run();

 private:
  // Names in force in one body: the main graph's or a function's.
  struct Scope {
    std::unordered_map<std::string, ValueId> values;
    Opsets opsets;
    std::unordered_map<std::string, std::string> results;  // formal output -> the caller's name
    BoundAttributes attributes;
    std::shared_ptr<const void> owner;  // keeps the nodes' tensors alive; null: they are copied
    std::string prefix;                 // of new names; empty in the main graph
    int depth = 0;
  };
  // The user's node that is being expanded.
  struct Origin {
    std::string name;
    int source = -1;
  };

  std::string where(const onnx::NodeProto& node, const Origin& origin) const;
  void reserve_names();
  void add_inputs(Scope& scope);
  void add_initializers(Scope& scope, const std::vector<int>& order);
  void set_outputs(const Scope& scope);

  void add_node(const onnx::NodeProto& node, Scope& scope, const Origin& origin);
  void add_constant_node(const onnx::NodeProto& node, const AttributeSource& source, Scope& scope);
  void add_primitive(const onnx::NodeProto& node, const OpDef& def, int opset,
                     const AttributeSource& source, Scope& scope, const Origin& origin);
  void add_call(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                const Opsets& opsets, const std::shared_ptr<const void>& owner, Scope& scope,
                const Origin& origin);
  void run_body(const onnx::FunctionProto& function, Scope& scope, const Origin& origin);
  ValueId named(ValueId value, const std::string& name, const Origin& origin);

  // The value name for `name` of a body: the caller's where it is one of the body's results.
  std::string value_name(const std::string& name, const Scope& scope);
  std::vector<ValueId> input_ids(const onnx::NodeProto& node, const Scope& scope,
                                 const Origin& origin) const;
  void append(Node node);

  std::shared_ptr<const onnx::ModelProto> model_;
  std::string path_;
  ExternalData external_;
  FunctionLibrary functions_;
  Graph graph_;
  std::unordered_set<std::string> names_;
  int64_t steps_ = 0;  // nodes visited, expansions included
};

}  // namespace redfuser
