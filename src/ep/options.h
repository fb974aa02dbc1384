// The options of a provider, as a script gives them.
#pragma once

#include "ep/api.h"
#include "redfuser/redfuser.h"

namespace redfuser::ep {

struct ProviderOptions {
  SessionOptions session;
  CompileOptions compile;
  void* stream = nullptr;  // a CUstream of the caller's, for all runs; null: ONNX Runtime's
};

// Reads the options that were given for the provider of this name. UserError for a name that is not
// one of docs/onnxruntime.md, with a similar one; for a value that is not of the option's type; and
// where ONNX Runtime shall write a compiled model, which RedFuser has no form of.
ProviderOptions read_options(const Api& api, const std::string& provider,
                             const OrtSessionOptions& options);

}  // namespace redfuser::ep
