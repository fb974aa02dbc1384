// The activations of a recurrent layer as a functor of src/device/recurrent/cell.cuh.
#pragma once

#include <string>

#include "codegen/recurrent/recurrent_form.h"

namespace redfuser::codegen {

// The struct `Gates`.
std::string gate_functor(const ops::NodeView& view, const RecurrentForm& form);

}  // namespace redfuser::codegen
