#include <onnx/defs/schema.h>

#include <map>
#include <set>

#include "base/error.h"
#include "onnx/functions/expansions.h"
#include "onnx/functions/functions.h"
#include "onnx/import/importer.h"
#include "ops/op_def.h"
#include "ops/registry.h"
#include "redfuser/operators.h"

namespace redfuser {
namespace {

// In the order of the table.
enum class Definition { Expression, Kernel, Importer, SchemaBody, Expansion };

const char* text_of(Definition definition) {
  switch (definition) {
    case Definition::Expression:
      return "an expression per element";
    case Definition::Kernel:
      return "a CPU kernel";
    case Definition::Importer:
      return "the importer";
    case Definition::SchemaBody:
      return "ONNX's function body";
    case Definition::Expansion:
      return "a function body of ours";
  }
  internal_error("no definition {}", static_cast<int>(definition));
}

using Table = std::map<std::pair<std::string, Definition>, std::set<std::string>>;

void add_schema_bodies(Table& table, const std::set<std::string>& known) {
  for (const ::onnx::OpSchema& schema : ::onnx::OpSchemaRegistry::get_all_schemas()) {
    if (!schema.HasFunction() && !schema.HasContextDependentFunction()) continue;
    const std::string name = onnx::qualified_name(schema.domain(), schema.Name());
    if (known.count(name)) continue;
    table[{onnx::normal_domain(schema.domain()), Definition::SchemaBody}].insert(schema.Name());
  }
}

}  // namespace

std::string operator_table() {
  Table table;
  std::set<std::string> known;
  const auto add = [&](const std::string& domain, const std::string& name, Definition definition) {
    if (known.insert(onnx::qualified_name(domain, name)).second)
      table[{domain, definition}].insert(name);
  };
  const std::vector<std::string> expansions = onnx::own_expansion_names();
  const std::set<std::string> own(expansions.begin(), expansions.end());
  for (const char* name : onnx::kControlFlow) add("", name, Definition::Importer);
  add("", "Constant", Definition::Importer);
  for (const ops::OpDef& op : ops::all_ops()) {
    // Softmax and its like are expressions in the first opsets only.
    if (ops::find_op(op.domain, op.name, onnx::kNewestOpset) == nullptr) continue;
    // A kernel of an operator with a body computes the other forms.
    if (op.lower == nullptr &&
        own.count(onnx::qualified_name(std::string(op.domain), std::string(op.name)))) {
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
  std::string text = "| domain | defined by | operators |\n|---|---|---|\n";
  for (const auto& [key, names] : table) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    text += fmt::format("| {} | {} | {} |\n", key.first.empty() ? "ai.onnx" : key.first,
                        text_of(key.second), list);
  }
  return text;
}

}  // namespace redfuser
