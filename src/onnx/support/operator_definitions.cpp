#include "onnx/support/operator_definitions.h"

#include <onnx/defs/schema.h>

#include "onnx/functions/expansions.h"
#include "onnx/functions/functions.h"
#include "onnx/import/importer.h"
#include "ops/op_def.h"
#include "ops/registry.h"

namespace redfuser::onnx {
namespace {

void add_schema_bodies(OperatorTable& table, const std::set<std::string>& known) {
  for (const ::onnx::OpSchema& schema : ::onnx::OpSchemaRegistry::get_all_schemas()) {
    if (!schema.HasFunction() && !schema.HasContextDependentFunction()) continue;
    const std::string name = qualified_name(schema.domain(), schema.Name());
    if (known.count(name)) continue;
    table[{normal_domain(schema.domain()), Definition::SchemaBody}].insert(schema.Name());
  }
}

}  // namespace

OperatorTable operators_by_definition() {
  OperatorTable table;
  std::set<std::string> known;
  const auto add = [&](const std::string& domain, const std::string& name, Definition definition) {
    if (known.insert(qualified_name(domain, name)).second) table[{domain, definition}].insert(name);
  };
  const std::vector<std::string> expansions = own_expansion_names();
  const std::set<std::string> own(expansions.begin(), expansions.end());
  for (const char* name : kControlFlow) add("", name, Definition::Importer);
  add("", "Constant", Definition::Importer);
  for (const ops::OpDef& op : ops::all_ops()) {
    // Softmax and its like are expressions in the first opsets only.
    if (ops::find_op(op.domain, op.name, kNewestOpset) == nullptr) continue;
    // A kernel of an operator with a body computes the other forms.
    if (op.lower == nullptr &&
        own.count(qualified_name(std::string(op.domain), std::string(op.name)))) {
      continue;
    }
    add(std::string(op.domain), std::string(op.name),
        op.lower != nullptr ? Definition::Expression : Definition::Kernel);
  }
  for (const std::string& name : expansions) {
    const size_t dot = name.rfind('.');
    const bool bare = dot == std::string::npos;
    add(bare ? "" : name.substr(0, dot), bare ? name : name.substr(dot + 1), Definition::Expansion);
  }
  add_schema_bodies(table, known);
  return table;
}

}  // namespace redfuser::onnx
