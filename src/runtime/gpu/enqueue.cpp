// Runs of a GpuExecutor on the caller's memory and stream, and tensors to keep there.
#include <algorithm>

#include "base/error.h"
#include "runtime/gpu/executor.h"
#include "runtime/program/in_place.h"
#include "runtime/program/position_rows.h"

namespace redfuser::runtime {
namespace {

// The alignment of tensors that vector loads and TMA copies of kernels require.
constexpr uint64_t kAlignment = 16;

cuda::DevicePointer address_of(const DeviceTensor& tensor) {
  return reinterpret_cast<cuda::DevicePointer>(tensor.data);
}

int64_t bytes_of(const DeviceTensor& tensor) {
  return element_count(tensor.dims) * static_cast<int64_t>(size_of(tensor.dtype));
}

// Kernels may read around empty tensors, which the session's memory allows.
bool usable(const DeviceTensor& tensor) {
  return !tensor.on_host && bytes_of(tensor) > 0 && address_of(tensor) % kAlignment == 0;
}

bool overlap(const DeviceTensor& a, const DeviceTensor& b) {
  if (a.on_host != b.on_host) return false;
  return address_of(a) < address_of(b) + static_cast<uint64_t>(bytes_of(b)) &&
         address_of(b) < address_of(a) + static_cast<uint64_t>(bytes_of(a));
}

const DeviceTensor* find(const NamedDeviceTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

void check_pointer(const std::string& name, const DeviceTensor& tensor) {
  if (tensor.data == nullptr && bytes_of(tensor) > 0) user_error("\"{}\" has no memory", name);
}

}  // namespace

void GpuExecutor::check_not_ours(const std::string& name, const DeviceTensor& tensor) const {
  DeviceTensor arena;
  arena.dtype = DType::Int8;
  arena.dims = {arena_.bytes()};
  arena.data = reinterpret_cast<void*>(arena_.address());
  if (!overlap(arena, tensor)) return;
  user_error("\"{}\" lies in the session's own memory, which this run overwrites; copy it first",
             name);
}

void GpuExecutor::check_output(const std::string& name, const DeviceTensor& given) const {
  const auto found = std::find_if(
      graph_.outputs.begin(), graph_.outputs.end(),
      [&](ir::ValueId id) { return graph_.values[static_cast<size_t>(id)].name == name; });
  if (found == graph_.outputs.end()) user_error("the model has no output \"{}\"", name);
  if (program_->host().keeps(*found)) {
    user_error("output \"{}\" is made in host memory of its own; give no memory for it", name);
  }
  const Tensor got = Tensor::wrap(given.dtype, given.dims, nullptr, nullptr);
  const Tensor wanted = Tensor::wrap(graph_.values[static_cast<size_t>(*found)].dtype,
                                     cpu::dims_of(graph_, *found, symbols_), nullptr, nullptr);
  if (got.dtype() != wanted.dtype() || got.dims() != wanted.dims()) {
    user_error("output \"{}\" is given memory for {}, but it is {}", name, describe(got),
               describe(wanted));
  }
  check_pointer(name, given);
}

// Inputs and outputs that are used in place. An output whose memory the program still reads is
// copied at the end.
Addresses GpuExecutor::addresses_of(const NamedDeviceTensors& inputs,
                                    const NamedDeviceTensors& outputs) const {
  Addresses addresses;
  for (const ir::ValueId id : graph_.inputs) {
    const DeviceTensor& tensor = inputs.at(graph_.values[static_cast<size_t>(id)].name);
    if (usable(tensor)) addresses[id] = address_of(tensor);
  }
  const std::vector<ir::ValueId> produced = program_->produced_outputs();
  std::vector<const DeviceTensor*> taken;
  for (const ir::ValueId id : graph_.outputs) {
    const DeviceTensor* given = find(outputs, graph_.values[static_cast<size_t>(id)].name);
    const ir::ValueId root = program_->compiled().plan.root(id);
    const bool ours = std::find(produced.begin(), produced.end(), root) != produced.end();
    if (given == nullptr || !usable(*given) || !ours || addresses.count(root)) continue;
    bool free = std::none_of(taken.begin(), taken.end(),
                             [&](const DeviceTensor* other) { return overlap(*given, *other); });
    for (const ir::ValueId input : graph_.inputs) {
      const DeviceTensor& tensor = inputs.at(graph_.values[static_cast<size_t>(input)].name);
      if (!overlap(*given, tensor)) continue;
      free = free && tensor.data == given->data && may_write_in_place(*compiled_, id, input);
    }
    if (!free) continue;
    addresses[root] = address_of(*given);
    taken.push_back(given);
  }
  return addresses;
}

DeviceTensor GpuExecutor::deliver(const BoundProgram& shape, ir::ValueId id,
                                  const DeviceTensor* given, const cuda::Stream& stream) const {
  const ir::Value& value = graph_.values[static_cast<size_t>(id)];
  const bool known = value.is_constant() && !program_->has_constant(id);
  if (program_->host().keeps(id) && !value.is_constant()) {
    const auto tensor = std::make_shared<Tensor>(host_run_->value(id));
    return {value.dtype, tensor->dims(), const_cast<void*>(tensor->data()), true, tensor};
  }
  if (given == nullptr) {
    DeviceTensor result;
    result.dtype = value.dtype;
    result.dims = value.is_constant() ? value.constant.dims() : shape.layout().dims(id);
    result.on_host = known;
    result.data = known ? const_cast<void*>(value.constant.data())
                        : reinterpret_cast<void*>(shape.address(id));
    return result;
  }
  const int64_t bytes = bytes_of(*given);
  if (known && given->on_host) {
    std::copy_n(static_cast<const char*>(value.constant.data()), bytes,
                static_cast<char*>(given->data));
  } else if (known) {
    stream.to_device(address_of(*given), value.constant.data(), bytes);
  } else if (given->on_host) {
    stream.to_host(given->data, shape.address(id), bytes);
  } else {
    stream.copy(address_of(*given), shape.address(id), bytes);
  }
  return *given;
}

NamedDeviceTensors GpuExecutor::enqueue(const NamedDeviceTensors& inputs,
                                        const NamedDeviceTensors& outputs, void* handle) {
  NamedTensors shapes;
  for (const auto& [name, tensor] : inputs) {
    check_pointer(name, tensor);
    if (tensor.dtype == DType::String && !tensor.on_host) {
      user_error("input \"{}\" has strings, which are in host memory alone", name);
    }
    shapes[name] = Tensor::wrap(tensor.dtype, tensor.dims, tensor.data, nullptr);
  }
  bind_sizes(shapes);
  check_positions([&](ir::ValueId id) {
    return inputs.at(graph_.values[static_cast<size_t>(id)].name).on_host;
  });
  for (const auto& [name, tensor] : outputs) check_output(name, tensor);
  for (const NamedDeviceTensors* tensors : {&inputs, &outputs}) {
    for (const auto& [name, tensor] : *tensors) check_not_ours(name, tensor);
  }
  const cuda::Stream stream(program_->device(), handle != nullptr ? handle : stream_.handle());
  bool waits = false;
  const InputCopy copy_inputs = [&](const BoundProgram& to) {
    for (const ir::ValueId id : graph_.inputs) {
      if (program_->host().keeps(id)) continue;
      const DeviceTensor& tensor = inputs.at(graph_.values[static_cast<size_t>(id)].name);
      waits = waits || tensor.on_host;
      if (tensor.on_host) {
        stream.to_device(to.address(id), tensor.data, bytes_of(tensor));
      } else {
        stream.copy(to.address(id), address_of(tensor), bytes_of(tensor));
      }
    }
  };
  BoundProgram& shape = shape_for(addresses_of(inputs, outputs), [&](const BoundProgram& to) {
    copy_inputs(to);
    stream.synchronize();  // candidates run on the session's stream
  });
  launches = shape.launches();
  tunings = shape.tunings;
  timer_.begin(timing);
  timer_.mark(RunTimer::kStart, stream);
  copy_inputs(shape);
  timer_.mark(RunTimer::kInputsCopied, stream);
  timer_.time_enqueue([&] { launch(shape, stream); });
  timer_.mark(RunTimer::kComputed, stream);
  NamedDeviceTensors result;
  for (const ir::ValueId id : graph_.outputs) {
    const std::string& name = graph_.values[static_cast<size_t>(id)].name;
    const DeviceTensor* given = find(outputs, name);
    result[name] = deliver(shape, id, given, stream);
    waits = waits || (given != nullptr && given->on_host);
  }
  timer_.mark(RunTimer::kOutputsCopied, stream);
  if (waits) stream.synchronize();
  for (const ir::ValueId id : graph_.inputs) values_[static_cast<size_t>(id)] = Tensor();
  return result;
}

NamedDeviceTensors GpuExecutor::to_device(const NamedTensors& tensors) {
  NamedDeviceTensors result;
  for (const auto& [name, tensor] : tensors) {
    const DeviceTensor& target = result[name] = allocate(tensor.dtype(), tensor.dims());
    stream_.to_device(address_of(target), tensor.data(), static_cast<int64_t>(tensor.bytes()));
  }
  stream_.synchronize();
  return result;
}

NamedTensors GpuExecutor::to_host(const NamedDeviceTensors& tensors) {
  program_->device()->make_current();
  NamedTensors result;
  for (const auto& [name, from] : tensors) {
    Tensor& to = result[name] = Tensor(from.dtype, from.dims);
    if (from.on_host) {
      const Tensor source = Tensor::wrap(from.dtype, from.dims, from.data, from.owner);
      std::copy_n(source.as<char>(), source.bytes(), to.as<char>());
    } else {
      stream_.to_host(to.mutable_data(), reinterpret_cast<cuda::DevicePointer>(from.data),
                      static_cast<int64_t>(to.bytes()));
    }
  }
  stream_.synchronize();
  return result;
}

DeviceTensor GpuExecutor::allocate(DType dtype, const Dims& dims) {
  const cuda::DevicePtr& device = program_->device();
  device->make_current();
  const Tensor sizes = Tensor::wrap(dtype, dims, nullptr, nullptr);
  const auto bytes = static_cast<int64_t>(sizes.bytes());
  const auto buffer = std::make_shared<cuda::Buffer>(device, bytes, describe(sizes).c_str());
  return {dtype, dims, reinterpret_cast<void*>(buffer->address()), false, buffer};
}

void GpuExecutor::copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                                 const DeviceTensor& to) {
  if (from.on_host && to.on_host) return Executor::copy_positions(from, axis, begin, to);
  const PositionRows rows = position_rows(from, axis, begin, to);
  program_->device()->make_current();
  const cuda::MemoryRows source{address_of(from) + static_cast<uint64_t>(rows.offset),
                                rows.from_pitch, from.on_host};
  stream_.copy_rows({address_of(to), rows.to_pitch, to.on_host}, source, rows.width, rows.count);
  if (from.on_host || to.on_host) stream_.synchronize();
}

void GpuExecutor::order(void* before, void* after) {
  const cuda::DevicePtr& device = program_->device();
  device->make_current();
  ordered_.record(cuda::Stream(device, before != nullptr ? before : stream_.handle()));
  cuda::Stream(device, after != nullptr ? after : stream_.handle()).wait(ordered_);
}

void GpuExecutor::synchronize() {
  program_->device()->make_current();
  stream_.synchronize();
}

}  // namespace redfuser::runtime
