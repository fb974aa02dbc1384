// From a model and its fused regions to an ONNX file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnx/import/import.h"

namespace redfuser::onnx {

enum class EmitMode {
  Function,  // the file's own nodes, every region as a call of a model-local function
  Inline,    // the file's own nodes without any function
  Standard,  // the nodes of the Graph
};

// A fused region, given as nodes of the file's main graph (Node::source).
struct ExportRegion {
  std::string name;          // of the function; made unique where it is not
  std::string region_class;  // attention, row, ...
  std::vector<int> sources;
};

struct ExportOptions {
  EmitMode emit = EmitMode::Function;
  // Above this many bytes of initializers they go to external data, `PATH.data`.
  int64_t external_threshold = int64_t{1} << 30;
};

struct ExportedRegion {
  std::string name, region_class;
  std::vector<std::string> nodes;  // the user's nodes in its body
};

struct ExportResult {
  std::vector<ExportedRegion> regions;
  std::vector<std::string> notes;  // nodes left out of a region, regions left out, and why
  std::map<std::string, int> operators_before, operators_after;
};

// Writes the model. Dead nodes are left out, and nodes whose results are small constants in `graph`
// (values with `constant`, matched by name) become initializers. `graph` is model.graph after any
// passes.
//
// In Function mode a region becomes a node of the domain `ai.redfuser`; the body of its function is
// the original nodes, its inputs are the values read from outside (initializers among them), its
// outputs the values that others or the graph's outputs use. Regions are disjoint, the first one
// named keeps a shared node, and convex: nodes that would put a cycle around a node outside are
// left out and noted.
//
// The result passes ONNX's checker. The same arguments give the same bytes. Throws UserError that
// names the path when it cannot be written; nothing is then left behind, and a file of that name
// stays as it was.
ExportResult save_model(const LoadedModel& model, const ir::Graph& graph,
                        const std::vector<ExportRegion>& regions, const ExportOptions& options,
                        const std::string& path);

// Writes the file's own nodes as they are, without ONNX's checker. Only its functions are inlined
// in the modes that have none.
ExportResult copy_model(const LoadedModel& model, const ExportOptions& options,
                        const std::string& path);
// The bytes of such a file. Errors call it `name`.
ExportResult copy_model(const LoadedModel& model, EmitMode mode, const std::string& name,
                        std::string& bytes);

// The bytes of the file that save_model writes, all weights inside. Errors call it `name`.
ExportResult serialise_model(const LoadedModel& model, const ir::Graph& graph,
                             const std::vector<ExportRegion>& regions, EmitMode mode,
                             const std::string& name, std::string& bytes);

// The model whose file would have the nodes of `graph`, an edited copy of model.graph with its
// inputs and outputs, whose dtypes may be others.
std::shared_ptr<const LoadedModel> with_graph(const LoadedModel& model, const ir::Graph& graph);

// The domain of the functions that regions become.
inline constexpr const char* kRegionDomain = "ai.redfuser";

}  // namespace redfuser::onnx
