// The nodes of a model that can run.
#pragma once

#include <string>
#include <string_view>

#include "redfuser/support.h"

namespace redfuser::onnx {

// What redfuser::supported_nodes returns.
NodeSupport supported_nodes(std::string_view bytes, const std::string& name,
                            const NamedTensors& weights);

}  // namespace redfuser::onnx
