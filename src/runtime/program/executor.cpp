#include "runtime/program/executor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "io/did_you_mean.h"
#include "runtime/program/position_rows.h"

namespace redfuser::runtime {

void Executor::take_settings(const Executor& other) {
  profiling = other.profiling;
  timing = other.timing;
  keep_all = other.keep_all;
  keep_names = other.keep_names;
  progress = other.progress;
  on_value = other.on_value;
}

Tensor copied(const Tensor& tensor) {
  if (is_list(tensor.dtype())) {
    std::vector<Tensor> elements = tensor.elements();
    for (Tensor& element : elements) element = copied(element);
    if (tensor.dtype() == DType::Sequence) return Tensor::sequence(std::move(elements));
    return Tensor::optional(elements.empty() ? Tensor() : elements[0]);
  }
  Tensor copy(tensor.dtype(), tensor.dims());
  if (tensor.bytes() > 0) std::memcpy(copy.mutable_data(), tensor.data(), tensor.bytes());
  return copy;
}

void check_names(const NamedTensors& memory, const std::vector<std::string>& outputs) {
  for (const auto& [name, tensor] : memory) {
    if (std::find(outputs.begin(), outputs.end(), name) != outputs.end()) continue;
    user_error("the model has no output \"{}\"{}", name, io::did_you_mean(name, outputs));
  }
}

void check_memory(const std::string& output, DType dtype, const Dims& dims, const Tensor& memory) {
  if (memory.dtype() == dtype && memory.dims() == dims) return;
  user_error("output \"{}\" is {}, but the memory given for it is {}", output,
             describe(Tensor::wrap(dtype, dims, nullptr, nullptr)), describe(memory));
}

void copy_to(const std::string& output, const Tensor& result, const Tensor& memory) {
  if (result.dtype() == DType::String || is_list(result.dtype())) {
    user_error("output \"{}\" is {}: only numbers are written to the caller's memory", output,
               describe(result));
  }
  check_memory(output, result.dtype(), result.dims(), memory);
  if (result.data() == memory.data() || result.bytes() == 0) return;
  std::memmove(const_cast<void*>(memory.data()), result.data(), result.bytes());
}

NamedTensors Executor::run_into(const NamedTensors& inputs, const NamedTensors& outputs) {
  NamedTensors results = run(inputs);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : results) names.push_back(name);
  check_names(outputs, names);
  for (const auto& [name, memory] : outputs) {
    copy_to(name, results[name], memory);
    results[name] = memory;
  }
  return results;
}

DeviceTiming Executor::time_on_device(const NamedTensors&, double) {
  user_error("time_on_device needs a session on cuda");
}

NamedDeviceTensors Executor::enqueue(const NamedDeviceTensors&, const NamedDeviceTensors& outputs,
                                     void*) {
  const bool appends = !outputs.empty() &&
                       std::all_of(outputs.begin(), outputs.end(),
                                   [](const auto& output) { return !output.second.room.empty(); });
  if (!appends) user_error("enqueue needs a session on cuda");
  return {};
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
