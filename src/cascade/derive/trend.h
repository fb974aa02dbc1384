// How values of the running state change while a row is folded.
#pragma once

#include "cascade/derive/builder.h"

namespace redfuser::cascade {

// False if the value, over State and Count leaves, is proved never to fall. Infinities that a
// selection replaces by a constant are left aside.
bool may_fall(const StreamingBuilder& builder, ir::Expr running);

}  // namespace redfuser::cascade
