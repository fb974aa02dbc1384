// Session: runs on the host's tensors and on the caller's GPU memory.
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>

#include "value.h"

namespace redfuser::python {
namespace {

using Values = std::map<std::string, Value>;

KernelCacheMode cache_mode(const std::string& name) {
  if (name == "on") return KernelCacheMode::On;
  if (name == "off") return KernelCacheMode::Off;
  if (name == "readonly") return KernelCacheMode::ReadOnly;
  throw UserError("kernel_cache is on, off or readonly, not \"" + name + "\"");
}

std::shared_ptr<SharedSession> make_session(const Program& program, const std::string& device,
                                            int threads, int64_t memory_limit, bool tf32,
                                            bool exact_products, bool exact_masks, int kept_shapes,
                                            const std::string& kernel_cache,
                                            const std::string& kernel_cache_folder, bool tune) {
  SessionOptions options;
  options.device = device;
  options.threads = threads;
  options.memory_limit = memory_limit;
  options.tf32 = tf32;
  options.exact_products = exact_products;
  options.exact_masks = exact_masks;
  options.kept_shapes = kept_shapes;
  options.kernel_cache = cache_mode(kernel_cache);
  options.kernel_cache_folder = kernel_cache_folder;
  options.tune = tune;
  return std::make_shared<SharedSession>(program, options);
}

// A run, of which the times of steps are kept where runs are profiled.
template <typename Run>
void profiled(SharedSession& shared, Run&& run) {
  const double begin_us = shared.profile ? shared.profile->elapsed_us() : 0;
  run();
  if (shared.profile) shared.profile->add(shared.session.step_times(), begin_us);
}

// `control`, which may be null, ends the run.
Values run(SharedSession& shared, const Values& inputs,
           const std::shared_ptr<RunControl>& control) {
  NamedTensors tensors;
  for (const auto& [name, value] : inputs) {
    if (!value.on_host()) {
      throw UserError("input \"" + name + "\" lies on the GPU, but this run takes host memory");
    }
    tensors[name] = value.host;
  }
  NamedTensors outputs;
  {
    const nb::gil_scoped_release release;
    const Turn turn(shared);
    shared.session.on_progress(Interrupts(control));
    profiled(shared, [&] { outputs = shared.session.run(tensors); });
  }
  Values values;
  for (auto& [name, tensor] : outputs) values[name].host = std::move(tensor);
  return values;
}

// Memory for the outputs that are not given, by the sizes of the inputs.
void allocate_outputs(SharedSession& shared, const std::vector<ValueInfo>& infos,
                      const NamedDeviceTensors& inputs, NamedDeviceTensors& outputs) {
  NamedDims sizes;
  for (const auto& [name, tensor] : inputs) sizes[name] = tensor.dims;
  const NamedDims wanted = shared.session.output_dims(sizes);
  for (const ValueInfo& info : infos) {
    if (outputs.count(info.name) > 0) continue;
    outputs[info.name] = shared.session.allocate(info.dtype, wanted.at(info.name));
  }
}

// Runs on `stream` (0: the session's own, and then waits for it).
Values enqueue(const std::shared_ptr<SharedSession>& shared, const Model& model,
               const Values& inputs, const Values& outputs, uintptr_t stream,
               const std::shared_ptr<RunControl>& control) {
  NamedDeviceTensors from, to;
  for (const auto& [name, value] : inputs) from[name] = value.as_device();
  for (const auto& [name, value] : outputs) {
    if (value.read_only) throw UserError("the memory of output \"" + name + "\" is read-only");
    to[name] = value.as_device();
  }
  void* const handle = reinterpret_cast<void*>(stream);
  {
    const nb::gil_scoped_release release;
    const Turn turn(*shared);
    shared->session.on_progress(Interrupts(control));
    allocate_outputs(*shared, model.outputs(), from, to);
    profiled(*shared, [&] {
      to = shared->session.enqueue(from, to, handle);
      if (handle == nullptr) shared->session.synchronize();
    });
  }
  Values values;
  for (auto& [name, tensor] : to) {
    const auto given = outputs.find(name);
    if (given != outputs.end()) {
      values[name] = given->second;
      continue;
    }
    Value& value = values[name];
    value.device = std::move(tensor);
    if (handle == nullptr) continue;
    value.session = shared;
    value.stream = handle;
  }
  return values;
}

Value to_device(SharedSession& shared, const Value& value) {
  if (!value.on_host()) return value;
  Value result;
  const nb::gil_scoped_release release;
  const Turn turn(shared);
  result.device = shared.session.to_device({{"tensor", value.host}}).at("tensor");
  return result;
}

Value to_host(SharedSession& shared, const Value& value) {
  if (value.on_host()) return value;
  Value result;
  const nb::gil_scoped_release release;
  const Turn turn(shared);
  if (value.stream != nullptr) shared.session.order(value.stream, nullptr);
  result.host = shared.session.to_host({{"tensor", value.device}}).at("tensor");
  return result;
}

Value allocate(SharedSession& shared, const std::string& dtype, const Dims& shape) {
  Value result;
  const nb::gil_scoped_release release;
  const Turn turn(shared);
  result.device = shared.session.allocate(dtype_named(dtype), shape);
  return result;
}

NamedDims output_shapes(SharedSession& shared, const NamedDims& inputs) {
  const nb::gil_scoped_release release;
  const Turn turn(shared);
  return shared.session.output_dims(inputs);
}

void start_profile(SharedSession& shared) {
  const nb::gil_scoped_release release;
  const Turn turn(shared);
  shared.session.profile(true);
  shared.profile = std::make_unique<Profile>();
}

std::string end_profile(SharedSession& shared) {
  const nb::gil_scoped_release release;
  const Turn turn(shared);
  if (!shared.profile) throw UserError("the session's runs are not profiled");
  shared.session.profile(false);
  return std::exchange(shared.profile, nullptr)->text();
}

std::string explained(SharedSession& shared) {
  const nb::gil_scoped_release release;
  const Turn turn(shared);
  return shared.program.explain(shared.session.step_facts(), shared.session.device());
}

}  // namespace

double Profile::elapsed_us() const {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_)
      .count();
}

void Profile::add(const std::vector<StepTime>& steps, double begin_us) {
  constexpr size_t kMostSteps = 1'000'000;
  if (steps_ >= kMostSteps) return;
  steps_ += steps.size();
  runs_.push_back(since_origin(steps, begin_us));
}

std::string Profile::text() const { return chrome_trace(runs_, "redfuser"); }

Turn::Turn(SharedSession& shared) : shared_(shared) {
  if (shared.owner == std::this_thread::get_id()) {
    throw UserError("the session cannot run within a callback of its own run");
  }
  shared.mutex.lock();
  shared.owner = std::this_thread::get_id();
}

Turn::~Turn() {
  shared_.owner = std::thread::id();
  shared_.mutex.unlock();
}

void Interrupts::operator()(int, int) {
  if (control_ != nullptr && control_->terminate) {
    throw UserError("the run was ended by the flag terminate of its options");
  }
  constexpr std::chrono::milliseconds kInterval(50);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kInterval) return;
  last_ = now;
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

void bind_sessions(nb::module_& module) {
  nb::class_<RunControl>(module, "RunControl", "Ends the runs that it was given to.")
      .def(nb::init<>())
      .def_prop_rw(
          "terminate", [](const RunControl& c) { return c.terminate.load(); },
          [](RunControl& c, bool value) { c.terminate = value; });
  nb::class_<SharedSession>(module, "Session", "Memory, streams and kernels of one device.")
      .def_prop_ro("device", [](SharedSession& s) { return s.session.device(); })
      .def_prop_ro("on_gpu", [](SharedSession& s) { return s.session.stream() != nullptr; })
      .def_prop_ro(
          "stream",
          [](SharedSession& s) { return reinterpret_cast<uintptr_t>(s.session.stream()); },
          "The session's own CUDA stream; 0 on the CPU.")
      .def_prop_ro("notes", [](SharedSession& s) { return s.session.notes(); })
      .def_prop_ro("versions", [](SharedSession& s) { return s.session.versions(); })
      .def("run", run, nb::arg("inputs"), nb::arg("control").none() = nb::none())
      .def("start_profile", start_profile, "Keeps the times of the steps of runs.")
      .def("end_profile", end_profile, "The times as JSON that chrome://tracing opens.")
      .def("explain_json", explained)
      .def("to_device", to_device, nb::arg("tensor"))
      .def("to_host", to_host, nb::arg("tensor"))
      .def("allocate", allocate, nb::arg("dtype"), nb::arg("shape"))
      .def("output_shapes", output_shapes, nb::arg("inputs"));
  module.def("enqueue", enqueue, nb::arg("session"), nb::arg("model"), nb::arg("inputs"),
             nb::arg("outputs"), nb::arg("stream"), nb::arg("control").none());
  module.def("session", make_session, nb::arg("program"), nb::kw_only(), nb::arg("device"),
             nb::arg("threads"), nb::arg("memory_limit"), nb::arg("tf32"),
             nb::arg("exact_products"), nb::arg("exact_masks"), nb::arg("kept_shapes"),
             nb::arg("kernel_cache"), nb::arg("kernel_cache_folder"), nb::arg("tune"),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace redfuser::python
