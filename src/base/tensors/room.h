// Tensors in memory with room for more positions, which a later tensor may take.
#pragma once

#include <memory>

#include "base/deferred_contents.h"

namespace redfuser {

// Memory of the sizes of `tensor`. Each of its values has the elements at the indices below its own
// sizes. `filled` are the sizes of the value that was written last: only that one may be continued
// in place, so that the others keep their elements.
struct Room {
  Tensor tensor;
  Dims filled;
};

// The value of a room with these sizes, as a tensor that copies its elements out of the room at the
// first use of its data, unless they lie one after another there.
Tensor value_of(std::shared_ptr<Room> room, Dims dims);

// The room that the tensor is a value of; null for other tensors.
std::shared_ptr<Room> room_of(const Tensor& tensor);

}  // namespace redfuser
