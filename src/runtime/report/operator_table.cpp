#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "base/error.h"
#include "codegen/select/generate.h"
#include "onnx/support/operator_definitions.h"
#include "redfuser/operators.h"

namespace redfuser {
namespace {

using onnx::Definition;

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

// In the order of the table.
enum class GpuForm { Expression, Kernel, Body, Importer, None };

const char* text_of(GpuForm form) {
  switch (form) {
    case GpuForm::Expression:
      return "kernels generated from its expression";
    case GpuForm::Kernel:
      return "kernels of its own";
    case GpuForm::Body:
      return "kernels of its body's operators";
    case GpuForm::Importer:
      return "kernels of what the importer resolves";
    case GpuForm::None:
      return "none: the CPU computes it";
  }
  internal_error("no form {}", static_cast<int>(form));
}

GpuForm gpu_form(const std::string& domain, const std::string& name, Definition definition) {
  switch (definition) {
    case Definition::Expression:
      return GpuForm::Expression;
    case Definition::Kernel:
      return codegen::has_own_kernels(domain, name) ? GpuForm::Kernel : GpuForm::None;
    case Definition::Importer:
      return GpuForm::Importer;
    case Definition::SchemaBody:
    case Definition::Expansion:
      return GpuForm::Body;
  }
  internal_error("no definition {}", static_cast<int>(definition));
}

template <typename Column>
using Rows = std::map<std::pair<std::string, Column>, std::set<std::string>>;

template <typename Column>
std::string table_of(const char* column, const Rows<Column>& rows) {
  std::string text = fmt::format("| domain | {} | operators |\n|---|---|---|\n", column);
  for (const auto& [key, names] : rows) {
    text += fmt::format("| {} | {} | {} |\n", key.first.empty() ? "ai.onnx" : key.first,
                        text_of(key.second), fmt::join(names, ", "));
  }
  return text;
}

}  // namespace

std::string operator_table() { return table_of("defined by", onnx::operators_by_definition()); }

std::string gpu_operator_table() {
  Rows<GpuForm> rows;
  for (const auto& [key, names] : onnx::operators_by_definition()) {
    const auto& [domain, definition] = key;
    for (const std::string& name : names) {
      rows[{domain, gpu_form(domain, name, definition)}].insert(name);
    }
  }
  return table_of("on a GPU", rows);
}

}  // namespace redfuser
