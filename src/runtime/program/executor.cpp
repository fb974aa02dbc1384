#include "runtime/program/executor.h"

#include "base/error.h"

namespace redfuser::runtime {

DeviceTiming Executor::time_on_device(const NamedTensors&, double) {
  user_error("time_on_device needs a session on cuda");
}

NamedDeviceTensors Executor::enqueue(const NamedDeviceTensors&, const NamedDeviceTensors&, void*) {
  user_error("enqueue needs a session on cuda");
}

NamedDeviceTensors Executor::to_device(const NamedTensors&) {
  user_error("to_device needs a session on cuda");
}

NamedTensors Executor::to_host(const NamedDeviceTensors&) {
  user_error("to_host needs a session on cuda");
}

}  // namespace redfuser::runtime
