// Where the meaning of every operator comes from.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

namespace redfuser::onnx {

// An expression per element, a kernel, the importer, the body of ONNX's schema, or one of ours.
enum class Definition { Expression, Kernel, Importer, SchemaBody, Expansion };

// Names of operators by their domain, which is empty for ai.onnx, and by the definition of their
// newest opset.
using OperatorTable = std::map<std::pair<std::string, Definition>, std::set<std::string>>;
OperatorTable operators_by_definition();

}  // namespace redfuser::onnx
