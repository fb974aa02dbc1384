#include "runtime/gpu/host_run.h"

#include "base/error.h"
#include "cpu/opaque/opaque_shapes.h"

namespace redfuser::runtime {
namespace {

size_t index(ir::ValueId id) { return static_cast<size_t>(id); }

}  // namespace

HostRun::HostRun(const GpuProgram& program, int threads)
    : program_(program),
      kernels_(program.compiled().cpu_kernels.of(program.compiled().plan)),
      pool_(threads),
      all_checks_(program.graph()),
      checks_(all_checks_) {
  const CompiledProgram& compiled = program.compiled();
  for (const auto& [step, bodies] : compiled.bodies) {
    calls_.try_emplace(step, compiled, step, bodies, pool_, false);
  }
}

void HostRun::begin(const std::vector<int64_t>& symbols, std::span<const Tensor> inputs) {
  const ir::Graph& graph = program_.graph();
  symbols_ = symbols;
  checks_ = all_checks_;
  checks_.run(symbols_);
  for (auto& [step, call] : calls_) call.restart();
  values_.assign(graph.values.size(), Tensor());
  for (const ir::ValueId id : graph.inputs) {
    if (program_.host().keeps(id)) values_[index(id)] = inputs[index(id)];
  }
}

void HostRun::fetch(const BoundProgram& shape, ir::ValueId id, const cuda::Stream& stream) {
  const ir::Value& value = program_.graph().values[index(id)];
  Tensor& tensor = values_[index(id)];
  if (value.is_constant()) tensor = value.constant;
  if (tensor.defined()) return;
  tensor = Tensor(value.dtype, shape.dims(id));
  stream.to_host(tensor.mutable_data(), shape.address(id), static_cast<int64_t>(tensor.bytes()));
}

void HostRun::compute(size_t number) {
  const CompiledProgram& program = program_.compiled();
  const ir::Graph& graph = program.graph();
  const fuse::Step& step = program.plan.steps[number];
  cpu::RunContext context{graph, values_, symbols_, pool_};
  for (const ir::NodeId node : step.binds) {
    cpu::bind_runtime_shape(context, graph.nodes[static_cast<size_t>(node)]);
  }
  if (const auto* alias = std::get_if<fuse::AliasStep>(&step.kind)) {
    values_[index(alias->value)] =
        values_[index(alias->source)].reshaped(cpu::dims_of(graph, alias->value, symbols_));
  } else {
    for (const cpu::PositionGuard& guard : program.guards[number]) guard.run(context);
    const auto call = calls_.find(number);
    if (call != calls_.end()) {
      call->second.run(context, INT64_MAX, nullptr);
    } else {
      kernels_[number]->run(context);
    }
  }
  checks_.run(symbols_);
}

void HostRun::run(const BoundProgram& shape, size_t number, const cuda::Stream& stream) {
  const fuse::Step& step = program_.compiled().plan.steps[number];
  for (const ir::ValueId id : step.reads) fetch(shape, id, stream);
  for (const cpu::PositionGuard& guard : program_.compiled().guards[number]) {
    for (const ir::ValueId id : guard.reads()) fetch(shape, id, stream);
  }
  stream.synchronize();
  compute(number);
  for (const ir::ValueId id : step.writes) {
    const Tensor& value = values_[index(id)];
    RF_CHECK(value.defined(), "step \"{}\" did not compute \"{}\"", step.label,
             program_.graph().values[index(id)].name);
    if (program_.host().keeps(id)) continue;
    stream.to_device(shape.address(id), value.data(), static_cast<int64_t>(value.bytes()));
  }
  stream.synchronize();
  // Values of the GPU may change before the next step that reads them.
  for (const std::vector<ir::ValueId>* ids : {&step.reads, &step.writes}) {
    for (const ir::ValueId id : *ids) {
      if (!program_.host().keeps(id)) values_[index(id)] = Tensor();
    }
  }
}

}  // namespace redfuser::runtime
