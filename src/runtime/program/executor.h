// The base of executors: a Session's implementation for a device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "redfuser/device.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

// The same value in memory of its own.
Tensor copied(const Tensor& tensor);

// Memory of the caller for outputs (Session::run).
//
// UserError, with a similar name, for memory of a name that is not among `outputs`.
void check_names(const NamedTensors& memory, const std::vector<std::string>& outputs);
// UserError where the output's type and sizes are not those of its memory.
void check_memory(const std::string& output, DType dtype, const Dims& dims, const Tensor& memory);
// Copies a result to the memory, unless it is there. UserError as from check_memory, and for values
// that are not numbers.
void copy_to(const std::string& output, const Tensor& result, const Tensor& memory);

class Executor {
 public:
  virtual ~Executor() = default;
  virtual NamedTensors run(const NamedTensors& inputs) = 0;
  // Session::run with memory of the caller; this one copies.
  virtual NamedTensors run_into(const NamedTensors& inputs, const NamedTensors& outputs);
  virtual DeviceTiming time_on_device(const NamedTensors& inputs, double budget_s);
  virtual NamedDeviceTensors enqueue(const NamedDeviceTensors& inputs,
                                     const NamedDeviceTensors& outputs, void* stream);
  virtual void prepare(const NamedDeviceTensors& /*inputs*/,
                       const NamedDeviceTensors& /*outputs*/) {}
  virtual NamedDeviceTensors to_device(const NamedTensors& tensors);
  virtual NamedTensors to_host(const NamedDeviceTensors& tensors);
  virtual DeviceTensor allocate(DType dtype, const Dims& dims);
  virtual void copy_positions(const DeviceTensor& from, int64_t axis, int64_t begin,
                              const DeviceTensor& to);
  // Whether enqueue() takes memory with room of an input for an output that appends to it.
  virtual bool appends(const std::string& /*past*/, const std::string& /*present*/) const {
    return false;
  }
  virtual void* stream() const { return nullptr; }
  virtual void order(void* /*before*/, void* /*after*/) {}
  virtual void synchronize() {}
  virtual std::optional<RunTiming> run_timing() const { return std::nullopt; }
  virtual std::optional<DeviceState> device_state() const { return std::nullopt; }
  virtual std::vector<StepFacts> step_facts() const { return {}; }

  bool keeps(const std::string& name) const { return keep_all || keep_names.count(name) > 0; }
  bool keeps_any() const { return keep_all || !keep_names.empty(); }

  // Makes what the session's owner sets that of another executor.
  void take_settings(const Executor& other);

  // Set by the session's owner, read by run().
  bool profiling = false, timing = false, keep_all = false;
  std::set<std::string> keep_names;
  std::function<void(int, int)> progress;
  // Called with every value that a step has computed, but for those that may stay on a GPU's chip.
  // A defined result, of the same type and sizes, replaces the value for later steps; on a GPU not
  // if the value is an alias of another.
  std::function<Tensor(const std::string& name, const Tensor& value)> on_value;
  // Of the last run.
  std::vector<StepTime> times;
  std::vector<StepTuning> tunings;
  NamedTensors kept;
  int64_t peak = 0;
  int launches = 0;
  // Set at the session's start.
  std::string device = "cpu";
  std::map<std::string, std::string> versions;
  std::vector<std::string> notes;
};

}  // namespace redfuser::runtime
