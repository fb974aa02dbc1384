// The implementation of States.
#pragma once

#include <optional>

#include "runtime/state/state_value.h"

namespace redfuser {

struct States::Impl {
  Session* session = nullptr;
  Model model;
  int64_t capacity = 0;
  std::vector<runtime::StateValue> values;
  std::vector<StatePair> pairs;
  bool running = false;
  int refused = 0;  // runs in succession that had to be prepared for themselves

  // A run with its states.
  struct Run {
    NamedDeviceTensors inputs, given;
  };
  NamedDeviceTensors last, before;  // inputs of the last two runs, without their data
  std::optional<Run> next;          // prepared

  bool on_gpu() const { return session->stream() != nullptr; }
  const runtime::StateValue& find(const std::string& name) const;
  void check_idle(const std::string& name) const;
  NamedDeviceTensors with_pasts(const NamedDeviceTensors& inputs) const;
  void check_growth(const NamedDims& inputs, const NamedDims& outputs) const;
  NamedDims output_dims(const NamedDims& inputs) const;
  bool may_append() const;
  // On the CPU: a run of sizes that grow, or nothing and no run, as from Session::enqueue. `known`
  // are the sizes of the outputs.
  NamedDeviceTensors append(const NamedDeviceTensors& inputs, const NamedDims& known);
  NamedDeviceTensors run_on_cpu(const NamedDeviceTensors& inputs);
  // On a GPU: `inputs` with the states, and memory for what becomes of them.
  Run run_with_states(const NamedDeviceTensors& inputs);
  // Takes the prepared run if it is of such inputs, and nothing else has come to share the states.
  std::optional<Run> take_prepared(const NamedDeviceTensors& inputs);
  void note(const NamedDeviceTensors& inputs);
  // The inputs of the run after the last one if sizes go on changing as they do; empty if unknown.
  NamedDeviceTensors expected() const;
  NamedDeviceTensors run(const NamedDeviceTensors& inputs);
};

}  // namespace redfuser
