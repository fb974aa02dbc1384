#include <algorithm>

#include "base/error.h"
#include "redfuser/dlpack.h"
#include "runtime/program/executor.h"
#include "runtime/state/states_impl.h"

namespace redfuser {

States::States(Session& session, const Model& model, const StateOptions& options)
    : impl_(std::make_unique<Impl>()) {
  impl_->session = &session;
  impl_->model = model;
  impl_->capacity = options.capacity;
  if (options.capacity < 0) user_error("the capacity of states is {}", options.capacity);
  impl_->pairs = find_states(model, options.pairs);
  if (impl_->pairs.empty()) {
    user_error(
        "the model has no states: no names of inputs and outputs are such as "
        "\"past_key_values.0.key\" and \"present.0.key\", and no pairs are given");
  }
  for (const StatePair& pair : impl_->pairs) {
    const auto declared = std::find_if(model.inputs().begin(), model.inputs().end(),
                                       [&](const ValueInfo& i) { return i.name == pair.past; });
    impl_->values.emplace_back(pair, *declared, options.capacity);
  }
}

States::States(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
States::~States() = default;
States::States(States&&) noexcept = default;
States& States::operator=(States&&) noexcept = default;

NamedDeviceTensors States::run_in_place(const NamedDeviceTensors& inputs) {
  NamedDeviceTensors outputs = impl_->run(inputs);
  impl_->session->synchronize();
  return outputs;
}

NamedDeviceTensors States::enqueue(const NamedDeviceTensors& inputs) { return impl_->run(inputs); }

NamedTensors States::run(const NamedTensors& inputs) {
  NamedDeviceTensors tensors;
  for (const auto& [name, tensor] : inputs) tensors[name] = dlpack::on_host(tensor);
  const NamedDeviceTensors outputs = impl_->run(tensors);
  if (impl_->on_gpu()) return impl_->session->to_host(outputs);
  NamedTensors result;
  for (const auto& [name, tensor] : outputs) result[name] = dlpack::to_tensor(tensor);
  return result;
}

int64_t States::length() const {
  int64_t longest = 0;
  for (const runtime::StateValue& state : impl_->values) {
    longest = std::max(longest, state.length());
  }
  return longest;
}

void States::reset() {
  impl_->next.reset();
  for (runtime::StateValue& state : impl_->values) {
    impl_->check_idle(state.pair().past);
    state.drop();
  }
  impl_->refused = 0;
}

void States::rewind(int64_t positions) {
  if (positions < 0) user_error("rewind by {} positions", positions);
  for (const runtime::StateValue& state : impl_->values) {
    const std::string& name = state.pair().past;
    impl_->check_idle(name);
    if (positions == 0) continue;
    if (!state.pair().axis) {
      user_error("state \"{}\" has no axis along which it grows; its earlier values are not kept",
                 name);
    }
    if (positions > state.length()) {
      user_error("state \"{}\" has {} positions; it cannot be rewound by {}", name, state.length(),
                 positions);
    }
  }
  if (positions == 0) return;
  impl_->next.reset();
  // Memory for all of them before one changes.
  std::vector<DeviceTensor> shorter(impl_->values.size());
  for (size_t i = 0; i < shorter.size(); ++i) {
    runtime::StateValue& state = impl_->values[i];
    if (!state.value().room.empty()) continue;
    Dims dims = state.value().dims;
    dims[static_cast<size_t>(*state.pair().axis)] -= positions;
    shorter[i] = state.target(*impl_->session, dims);
    impl_->session->copy_positions(state.value(), *state.pair().axis, 0, shorter[i]);
  }
  for (size_t i = 0; i < shorter.size(); ++i) {
    runtime::StateValue& state = impl_->values[i];
    if (state.value().room.empty()) {
      state.replace(shorter[i]);
    } else {
      state.shorten(state.length() - positions);
    }
  }
}

States States::fork() const {
  auto other = std::make_unique<Impl>(*impl_);
  other->next.reset();
  for (runtime::StateValue& state : other->values) {
    impl_->check_idle(state.pair().past);
    state = state.fork();
  }
  return States(std::move(other));
}

const std::vector<StatePair>& States::pairs() const { return impl_->pairs; }

DeviceTensor States::tensor(const std::string& name) const {
  const runtime::StateValue& state = impl_->find(name);
  impl_->check_idle(state.pair().past);
  if (!state.written()) user_error("state \"{}\" is empty: no run has written it", name);
  return state.dense(*impl_->session);
}

Tensor States::read(const std::string& name) const {
  const DeviceTensor value = tensor(name);
  if (!value.on_host) return impl_->session->to_host({{name, value}}).at(name);
  return runtime::copied(dlpack::to_tensor(value));
}

}  // namespace redfuser
