#include "runtime/program/executor.h"

#include <cstring>

#include "base/error.h"
#include "runtime/program/position_rows.h"

namespace redfuser::runtime {

Tensor copied(const Tensor& tensor) {
  if (tensor.dtype() == DType::Sequence || tensor.dtype() == DType::Optional) {
    std::vector<Tensor> elements = tensor.elements();
    for (Tensor& element : elements) element = copied(element);
    if (tensor.dtype() == DType::Sequence) return Tensor::sequence(std::move(elements));
    return Tensor::optional(elements.empty() ? Tensor() : elements[0]);
  }
  Tensor copy(tensor.dtype(), tensor.dims());
  if (tensor.bytes() > 0) std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
  return copy;
}

DeviceTiming Executor::time_on_device(const NamedTensors&, double) {
  user_error("time_on_device needs a session on cuda");
}

NamedDeviceTensors Executor::enqueue(const NamedDeviceTensors&, const NamedDeviceTensors&, void*) {
  user_error("enqueue needs a session on cuda");
}

NamedDeviceTensors Executor::to_device(const NamedTensors&) {
  user_error("to_device needs a session on cuda");
}

DeviceTensor Executor::allocate(DType, const Dims&) {
  user_error("allocate needs a session on cuda");
}

void Executor::copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                              const DeviceTensor& to) {
  if (!from.on_host || !to.on_host) user_error("copies on a GPU need a session on cuda");
  const PositionRows rows = position_rows(from, axis, begin, to);
  const char* source = static_cast<const char*>(from.data) + rows.offset;
  char* target = static_cast<char*>(to.data);
  for (int64_t row = 0; row < rows.count; ++row) {
    std::memcpy(target + row * rows.to_pitch, source + row * rows.from_pitch,
                static_cast<size_t>(rows.width));
  }
}

NamedTensors Executor::to_host(const NamedDeviceTensors&) {
  user_error("to_host needs a session on cuda");
}

}  // namespace redfuser::runtime
