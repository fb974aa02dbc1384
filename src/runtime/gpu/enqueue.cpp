// Runs of a GpuExecutor on the caller's memory and stream, and tensors to keep there.
#include <algorithm>
#include <cstring>
#include <numeric>

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

// Of its memory.
int64_t bytes_of(const DeviceTensor& tensor) {
  return element_count(tensor.room.empty() ? tensor.dims : tensor.room) *
         static_cast<int64_t>(size_of(tensor.dtype));
}

// Kernels may read around empty tensors, which the session's memory allows.
bool usable(const DeviceTensor& tensor) {
  return !tensor.on_host && bytes_of(tensor) > 0 && address_of(tensor) % kAlignment == 0;
}

// Of a tensor on the GPU; empty of one on the host.
MemoryRange range_of(const DeviceTensor& tensor) {
  if (tensor.on_host) return {};
  return {address_of(tensor), address_of(tensor) + static_cast<uint64_t>(bytes_of(tensor))};
}

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.begin < b.end && b.begin < a.end;
}

// By the order of `ids`; null where none is given.
std::vector<const DeviceTensor*> by_id(const ir::Graph& graph, const std::vector<ir::ValueId>& ids,
                                       const NamedDeviceTensors& tensors) {
  std::vector<const DeviceTensor*> result;
  for (const ir::ValueId id : ids) {
    const auto found = tensors.find(graph.values[static_cast<size_t>(id)].name);
    result.push_back(found == tensors.end() ? nullptr : &found->second);
  }
  return result;
}

void check_pointer(const std::string& name, const DeviceTensor& tensor) {
  if (tensor.data == nullptr && bytes_of(tensor) > 0) user_error("\"{}\" has no memory", name);
}

}  // namespace

void GpuExecutor::check_not_ours(const NamedDeviceTensors& tensors) const {
  const MemoryRange ours{arena_.address(),
                         arena_.address() + static_cast<uint64_t>(arena_.bytes())};
  for (const auto& [name, tensor] : tensors) {
    if (!overlap(ours, range_of(tensor))) continue;
    user_error("\"{}\" lies in the session's own memory, which this run overwrites; copy it first",
               name);
  }
}

void GpuExecutor::check_outputs(const NamedDeviceTensors& given,
                                const std::vector<const DeviceTensor*>& outputs) const {
  size_t known = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == nullptr) continue;
    ++known;
    if (has_size(graph_.outputs[i])) check_output(graph_.outputs[i], *outputs[i]);
  }
  if (known == given.size()) return;
  for (const auto& [name, tensor] : given) {
    const bool is_output =
        std::any_of(graph_.outputs.begin(), graph_.outputs.end(),
                    [&, &wanted = name](ir::ValueId id) { return value_of(id).name == wanted; });
    if (!is_output) user_error("the model has no output \"{}\"", name);
  }
}

bool GpuExecutor::has_size(ir::ValueId value) const {
  if (program_->host().keeps(value)) return true;
  const auto& symbols = compiled_->shape_symbols[static_cast<size_t>(value)];
  return std::all_of(symbols.begin(), symbols.end(),
                     [&](int64_t symbol) { return symbols_[static_cast<size_t>(symbol)] >= 0; });
}

void GpuExecutor::check_output(ir::ValueId output, const DeviceTensor& given) const {
  const ir::Value& value = value_of(output);
  if (program_->host().keeps(output)) {
    user_error("output \"{}\" is made in host memory of its own; give no memory for it",
               value.name);
  }
  const Dims wanted = cpu::dims_of(graph_, output, symbols_);
  if (given.dtype != value.dtype || given.dims != wanted) {
    user_error("output \"{}\" is given memory for {}, but it is {}", value.name,
               describe(Tensor::wrap(given.dtype, given.dims, nullptr, nullptr)),
               describe(Tensor::wrap(value.dtype, wanted, nullptr, nullptr)));
  }
  check_pointer(value.name, given);
}

// Inputs and outputs that are used in place. An output whose memory the program still reads is
// copied at the end.
Addresses GpuExecutor::addresses_of(const std::vector<const DeviceTensor*>& inputs,
                                    const std::vector<const DeviceTensor*>& outputs) const {
  Addresses addresses;
  std::vector<MemoryRange> read, taken;
  for (size_t i = 0; i < inputs.size(); ++i) {
    read.push_back(range_of(*inputs[i]));
    if (usable(*inputs[i])) addresses[graph_.inputs[i]] = address_of(*inputs[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::ValueId id = graph_.outputs[i], root = program_->compiled().plan.root(id);
    if (outputs[i] == nullptr || !usable(*outputs[i]) || !program_->produces(id) || !has_size(id) ||
        addresses.count(root)) {
      continue;
    }
    const MemoryRange range = range_of(*outputs[i]);
    bool free = std::none_of(taken.begin(), taken.end(),
                             [&](const MemoryRange& other) { return overlap(range, other); });
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!overlap(range, read[k])) continue;
      const bool in_place = appends_to(graph_.inputs[k], id) ||
                            may_write_in_place(*compiled_, id, graph_.inputs[k], [&](size_t step) {
                              return program_->joined().place_of(step);
                            });
      free = free && read[k].begin == range.begin && in_place;
    }
    if (!free) continue;
    addresses[root] = range.begin;
    taken.push_back(range);
  }
  return addresses;
}

DeviceTensor GpuExecutor::deliver(const BoundProgram& shape, ir::ValueId id,
                                  const DeviceTensor* given, const cuda::Stream& stream) const {
  const ir::Value& value = value_of(id);
  const bool known = value.is_constant() && !program_->has_constant(id);
  if (program_->host().keeps(id) && !value.is_constant()) {
    const auto tensor = std::make_shared<Tensor>(host_run_->value(id));
    return {value.dtype, tensor->dims(), const_cast<void*>(tensor->data()), true, tensor};
  }
  if (given == nullptr) {
    DeviceTensor result;
    result.dtype = value.dtype;
    result.dims = value.is_constant() ? value.constant.dims() : cpu::dims_of(graph_, id, symbols_);
    result.on_host = known;
    const Dims memory = known ? result.dims : program_->memory_dims(id, symbols_);
    if (memory != result.dims) result.room = memory;
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

// Where inputs in host memory are copied from: page-locked memory, which later runs overwrite when
// the copies have been made, or, of many bytes, where they are.
std::vector<const void*> GpuExecutor::stage(const std::vector<const DeviceTensor*>& inputs) {
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool copied = inputs[i]->on_host && !program_->host().keeps(graph_.inputs[i]);
    bytes.push_back(copied ? bytes_of(*inputs[i]) : 0);
  }
  const int64_t total = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  char* next = total > 0 ? staging(total) : nullptr;
  std::vector<const void*> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    result.push_back(inputs[i]->data);
    if (next == nullptr || bytes[i] == 0) continue;
    result.back() = std::memcpy(next, inputs[i]->data, static_cast<size_t>(bytes[i]));
    next += bytes[i];
  }
  return result;
}

namespace {

// Whether the tensors are those that a run was prepared for, but for the contents of host memory.
bool alike(const NamedDeviceTensors& a, const NamedDeviceTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    const DeviceTensor &one = x.second, &other = y.second;
    return x.first == y.first && one.dtype == other.dtype && one.dims == other.dims &&
           one.room == other.room && one.on_host == other.on_host &&
           (one.on_host || one.data == other.data);
  });
}

NamedDeviceTensors without_owners(NamedDeviceTensors tensors) {
  for (auto& [name, tensor] : tensors) tensor.owner = nullptr;
  return tensors;
}

}  // namespace

GpuExecutor::BoundRun GpuExecutor::bind_run(const NamedDeviceTensors& inputs,
                                            const NamedDeviceTensors& outputs,
                                            const cuda::Stream& stream,
                                            const InputCopy& copy_inputs) {
  NamedTensors shapes;
  for (const auto& [name, tensor] : inputs) {
    shapes[name] = Tensor::wrap(tensor.dtype, tensor.dims, tensor.data, nullptr);
  }
  bind_sizes(shapes);
  const auto sources = by_id(graph_, graph_.inputs, inputs);
  const auto targets = by_id(graph_, graph_.outputs, outputs);
  check_outputs(outputs, targets);
  bind_rooms(inputs, outputs);
  check_not_ours(inputs);
  check_not_ours(outputs);
  Addresses addresses = addresses_of(sources, targets);
  BoundProgram& shape = shape_for(addresses, [&](const BoundProgram& to) {
    copy_inputs(to);
    stream.synchronize();  // candidates run on the session's stream
  });
  return {std::move(addresses), &shape};
}

void GpuExecutor::prepare(const NamedDeviceTensors& inputs, const NamedDeviceTensors& outputs) {
  prepared_.reset();
  if (tuner_ != nullptr) return;
  BoundRun run = bind_run(inputs, outputs, stream_, nullptr);
  run.shape->foresee(symbols_, run.addresses);
  prepared_ = {std::move(run), without_owners(inputs), without_owners(outputs), keeps_any()};
}

bool GpuExecutor::is_prepared(const NamedDeviceTensors& inputs,
                              const NamedDeviceTensors& outputs) const {
  return prepared_ && prepared_->keeps == keeps_any() && alike(prepared_->inputs, inputs) &&
         alike(prepared_->outputs, outputs);
}

NamedDeviceTensors GpuExecutor::enqueue(const NamedDeviceTensors& inputs,
                                        const NamedDeviceTensors& outputs, void* handle) {
  for (const auto& [name, tensor] : inputs) {
    check_pointer(name, tensor);
    if (tensor.dtype == DType::String && !tensor.on_host) {
      user_error("input \"{}\" has strings, which are in host memory alone", name);
    }
  }
  program_->device()->make_current();
  const cuda::Stream stream(program_->device(), handle != nullptr ? handle : stream_.handle());
  const auto sources = by_id(graph_, graph_.inputs, inputs);
  const auto targets = by_id(graph_, graph_.outputs, outputs);
  std::vector<const void*> staged;
  bool waits = false, stages = false;
  const InputCopy copy_inputs = [&](const BoundProgram& to) {
    if (staged.empty()) staged = stage(sources);
    for (size_t i = 0; i < sources.size(); ++i) {
      const ir::ValueId id = graph_.inputs[i];
      if (program_->host().keeps(id)) continue;
      const DeviceTensor& tensor = *sources[i];
      if (tensor.on_host) {
        (staged[i] == tensor.data ? waits : stages) = true;
        stream.to_device(to.address(id), staged[i], bytes_of(tensor));
      } else {
        // Where choices are timed, a state has the memory of its dimensions alone.
        const int64_t bytes = std::min(bytes_of(tensor), to.room_of(id));
        stream.copy(to.address(id), address_of(tensor), bytes);
      }
    }
  };
  const bool prepared = is_prepared(inputs, outputs);
  if (prepared) {
    for (const auto& [name, tensor] : outputs) check_pointer(name, tensor);
  }
  BoundRun run =
      prepared ? std::move(prepared_->run) : bind_run(inputs, outputs, stream, copy_inputs);
  prepared_.reset();
  for (size_t i = 0; i < sources.size(); ++i) {
    const DeviceTensor& tensor = *sources[i];
    values_[static_cast<size_t>(graph_.inputs[i])] =
        Tensor::wrap(tensor.dtype, tensor.dims, tensor.data, nullptr);
  }
  check_positions([&](ir::ValueId id) { return inputs.at(value_of(id).name).on_host; });
  BoundProgram& shape = *run.shape;
  launches = shape.launches();
  tunings = shape.tunings;
  timer_.begin(timing);
  timer_.mark(RunTimer::kStart, stream);
  if (profiling) {
    profile_steps(shape, stream, copy_inputs);
  } else {
    copy_inputs(shape);
  }
  if (stages) staged_.record(stream);
  timer_.mark(RunTimer::kInputsCopied, stream);
  if (!profiling) timer_.time_enqueue([&] { launch(shape, stream); });
  timer_.mark(RunTimer::kComputed, stream);
  if (take_sizes(shape, 0, shape.steps(), stream)) check_outputs(outputs, targets);
  NamedDeviceTensors result;
  for (size_t i = 0; i < targets.size(); ++i) {
    const ir::ValueId id = graph_.outputs[i];
    result[value_of(id).name] = deliver(shape, id, targets[i], stream);
    waits = waits || (targets[i] != nullptr && targets[i]->on_host);
  }
  timer_.mark(RunTimer::kOutputsCopied, stream);
  if (!prepared) foresee(std::move(run.addresses));
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
