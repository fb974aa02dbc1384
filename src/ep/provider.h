// The execution provider of one session of ONNX Runtime.
#pragma once

#include "ep/options.h"

namespace redfuser::ep {

// Claims the sets of nodes that redfuser::supported_nodes finds, and compiles each to a node.
class Provider final : public OrtEp {
 public:
  Provider(const Api& api, ProviderOptions options, const OrtLogger& logger);

 private:
  static Provider& self(OrtEp* provider) { return *static_cast<Provider*>(provider); }
  void claim(const OrtGraph& graph, OrtEpGraphSupportInfo& claims) const;
  bool leaves_whole(const OrtGraph& graph) const;
  OrtNodeComputeInfo* compile(const OrtGraph& graph, const OrtNode& fused) const;
  void log(OrtLoggingLevel level, const std::string& message) const;

  const Api api_;
  const ProviderOptions options_;
  const OrtLogger& logger_;
  bool has_compiled_ = false;
};

}  // namespace redfuser::ep
