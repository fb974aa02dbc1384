// Tensors as JSON; redfuser/io.h gives the form.
#pragma once

#include <span>
#include <string>

#include "redfuser/redfuser.h"

namespace redfuser::io {

// `what` names the text in errors; `declared` gives the dtypes of bare lists by name.
NamedTensors tensors_from_json(const std::string& text, const std::string& what,
                               std::span<const ValueInfo> declared);
std::string tensors_to_json(const NamedTensors& tensors);

// The dtype that name_of calls `name`; Undefined if there is none.
DType dtype_of_name(std::string_view name);

}  // namespace redfuser::io
