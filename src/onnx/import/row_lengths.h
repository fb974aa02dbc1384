// Operators that know the rows of a batch by their lengths alone.
#pragma once

#include "onnx/import/import.h"

namespace redfuser::onnx {

// The first node of the main graph that reads every row from its first position up to a length, and
// so does not hide padding on the left: com.microsoft.GroupQueryAttention without a bias. By its
// name, else that of its first output. Empty without one.
std::string node_of_row_lengths(const LoadedModel& model);

}  // namespace redfuser::onnx
