// The execution provider of one session of ONNX Runtime.
#pragma once

#include <string>
#include <vector>

#include "ep/compiled_node.h"
#include "ep/options.h"

namespace redfuser::ep {

// Claims the sets of nodes that redfuser::supported_nodes finds, and compiles each to a node.
class Provider : public OrtEp {
 public:
  Provider(const Api& api, const char* name, ProviderOptions options, const OrtLogger& logger);
  virtual ~Provider() = default;

 protected:
  static Provider& self(OrtEp* provider) { return *static_cast<Provider*>(provider); }

  const Api api_;
  const char* const name_;
  const ProviderOptions options_;

 private:
  void claim(const OrtGraph& graph, OrtEpGraphSupportInfo& claims) const;
  bool leaves_whole(const OrtGraph& graph) const;
  CompiledNode* compile(const OrtGraph& graph, const OrtNode& fused) const;
  virtual CompiledNode* node(NodeParts parts) const = 0;
  void log(OrtLoggingLevel level, const std::string& message) const;

  const OrtLogger& logger_;
  bool has_compiled_ = false;
};

}  // namespace redfuser::ep
