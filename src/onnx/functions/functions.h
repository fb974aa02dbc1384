// A model's local functions, and names and versions of operators.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "redfuser/tensor.h"

namespace onnx {
class FunctionProto;
class ModelProto;
class NodeProto;
class OpSchema;
class TypeProto;
}  // namespace onnx

namespace redfuser::onnx {

// Versions of the operator sets in force, by domain ("" is ai.onnx).
using Opsets = std::map<std::string, int>;

// "ai.onnx" is an alias of "".
std::string normal_domain(const std::string& domain);
// The operator as users write it: "Gelu", "com.microsoft.FusedMatMul".
std::string qualified_name(const std::string& domain, const std::string& op);
Opsets opsets_of(const ::onnx::ModelProto& model);
Opsets opsets_of(const ::onnx::FunctionProto& function);

// The opsets of ai.onnx that are imported.
inline constexpr int kOldestOpset = 1, kNewestOpset = 27;
// Operators whose subgraphs the importer expands or runs.
inline constexpr const char* kControlFlow[] = {"If", "Loop", "Scan"};
bool is_control_flow(const std::string& op);

// Bounds on the expansion of nested functions.
inline constexpr int64_t kMaxNodes = 1'000'000;
inline constexpr int kMaxCallDepth = 64;

// A model's local functions.
class FunctionLibrary {
 public:
  // Throws UserError, starting with `where`, for functions defined twice, recursion, calls nested
  // deeper than kMaxCallDepth and expansions of more than kMaxNodes nodes.
  FunctionLibrary(const ::onnx::ModelProto& model, const std::string& where);
  // The function that `node` calls; null if it is not a call.
  const ::onnx::FunctionProto* find(const ::onnx::NodeProto& node) const;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
  struct Cost {
    int64_t nodes = 0;
    int depth = 0;
    bool open = true;  // on the path being walked
  };
  static Key key_of(const ::onnx::NodeProto& node);
  Cost measure(const ::onnx::FunctionProto& function, int depth, const std::string& where);

  std::map<Key, const ::onnx::FunctionProto*> functions_;
  std::map<const ::onnx::FunctionProto*, Cost> costs_;
};

}  // namespace redfuser::onnx
