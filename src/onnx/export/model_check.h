// ONNX's checker on a model that is to be written.
#pragma once

#include <string>

#include "onnx/export/output_model.h"

namespace redfuser::onnx {

// Throws UserError, naming `path`, where the checker refuses the model, which is as before
// afterwards. Operators of ONNX's domain that the standard does not have are not checked: ONNX
// Runtime has some.
void check_model(OutputModel& model, const std::string& path);

}  // namespace redfuser::onnx
